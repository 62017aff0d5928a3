"""Experiments around the core. A line of data travels down the stages, each of which imports only from those above it.

- ``data``: images on disk or inside packages -> batches
- ``models``: a trunk that is shared, heads that are not
- ``tasks``: network + images -> one scalar loss
- ``learners``: network + batch -> main loss and auxiliary losses
- ``run``: what a run is, as plain data
- ``trace``: the record of a run, one JSON line per recorded step
- ``train``: the loop, evaluation, checkpoints
- ``sweep``: many runs side by side
- ``experiments``: which runs make a table or a figure
"""
