"""Records of runs -> tables, figures and a verdict. Each room imports only from those above it.

- ``titles``: what lines and subjects are called
- ``data``: files -> records -> comparisons -> numbers over seeds
- ``tables``: comparisons -> sheets and sentences
- ``charts``: comparisons -> the model of a chart
- ``commands``: runs -> the commands that repeat them
- ``contents``: everything a report says, as plain data
- ``output``: that, on the terminal, in files and as a page
"""
