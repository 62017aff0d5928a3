"""Where learned weights go wrong, each case computed exactly and run with the real methods.

- ``contenders``: the methods that are tried
- ``training``: a real training loop on quadratic losses
- ``misleading``: every auxiliary task misleads
- ``vanishing``: the main gradient vanishes, and weight flows to small gradients
- ``units``: losses in unequal units
- ``minibatch``: the noise of minibatch gradients
"""
