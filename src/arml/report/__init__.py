"""Records of runs -> tables, figures and a verdict. Each room imports only from rooms above it.

- ``titles``: lines and subjects -> their titles
- ``data``: files -> records -> comparisons -> numbers over seeds
- ``tables``: numbers -> sheets and sentences
- ``charts``: numbers -> charts as plain data
- ``commands``: runs -> the commands that repeat them
- ``contents``: all of a report, as plain data
- ``output``: the report on the terminal, in files and as a page
"""
