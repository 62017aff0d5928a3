"""Numbers -> sheets (rows, columns, notes) and sentences, without any format."""
