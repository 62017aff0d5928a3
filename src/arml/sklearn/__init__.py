"""scikit-learn estimators for tables: a main target with few labels, and auxiliary targets that may help.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(30, 5))
>>> y = np.where(np.arange(30) < 10, X[:, 0] > 0, np.nan)  # ten labels
>>> aux = np.stack([X[:, 0] + X[:, 1], X[:, 2] > 0], axis=1)  # a number and a yes/no for every row
>>> model = AuxiliaryClassifier(steps=10, random_state=0).fit(X, y, aux=aux)
>>> model.classes_, sorted(model.aux_weights_), model.predict_proba(X).shape
(array([0., 1.]), ['aux0', 'aux1'], (30, 2))
"""

from arml.sklearn.estimators import AuxiliaryClassifier, AuxiliaryRegressor
from arml.sklearn.folds import LabelledFold

__all__ = ["AuxiliaryClassifier", "AuxiliaryRegressor", "LabelledFold"]
