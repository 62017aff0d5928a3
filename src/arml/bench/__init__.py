"""What learning the weights costs: our engines and other libraries, measured side by side.

Each file imports only from files above it:

- ``request``: what a user may ask for
- ``timing``: time and memory of a training step
- ``problems``: networks with K auxiliary tasks on random data
- ``peers``: training steps as others compute them
- ``contenders``: the training steps that are compared
- ``result``: everything that was measured, as one file (cost.json)
- ``costs``: every contender against K
- ``scaling``: other batches and numbers of parameters
- ``step_profile``: where the time of a step goes
- ``whole_run``: whole runs, and steps after the weights have settled
- ``recommended_run``: the steps of a run with the recommended method
- ``expected_traffic``: passes, memory and messages on paper
- ``processes``: time and messages on several processes
- ``cost_targets``: what an update may cost, and whether it costs more
- ``process_tables``, ``tables``, ``cost_charts``: a result as tables and figures
- ``session``: what to measure -> results
- ``publish``: a result -> files and a verdict
"""
