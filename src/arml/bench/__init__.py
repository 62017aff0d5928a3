"""What learning the weights costs: our ways to compute an update and those of others, measured side by side.

- ``problems``: networks with K auxiliary tasks, on made-up data
- ``peers``: how others compute task gradients
- ``ways``: the training steps that are compared
- ``measure``: time and memory of a step
- ``result``: everything that was measured, as one file
- ``costs``: every way against K; ``schedule``: whole runs; ``phases``: where time goes; ``scaling``: other sizes
- ``processes``: what several processes send each other
- ``targets``: what the cost should be, and whether it is
- ``sheets``, ``charts``: results as tables and figures
"""
