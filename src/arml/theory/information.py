"""The information that learning a task needs, I = KL + H, and what it costs in labels and in loss."""

from arml.theory.checks import check_count, check_same_size
from arml.theory.gaussian import Gaussian, log_det
from arml.theory.world import World


def information_needed(true_prior: Gaussian, prior: Gaussian) -> float:
    r""":math:`I = D(p^* \| p) + H(p^*) = E_{p^*}[-\log p(\theta)]`, in nats: the length of the answer in the code of p.

    Parameters are real numbers, so I is known up to a constant only (the number of digits) and may be negative. The
    difference between two priors has a meaning: it is the difference of their KL.
    """
    return true_prior.kl(prior) + true_prior.entropy()


def summed_loss(world: World, prior: Gaussian, labels: int) -> float:
    r"""What ``labels`` labels cost, predicted one after the other, beyond their cost with the true theta known.

    The prediction of each label uses the prior and all labels before it. In expectation over p* and labels,

    .. math:: R_n = \tfrac12 [\log\det S - \log\det (V / n) - d + \operatorname{tr}(S^{-1} (V / n + B))]

    with S = C + V / n for a prior N(b, C), and B the mean of :math:`(b - \theta)(b - \theta)^\top` under p*. It follows
    from the mean of the labels alone, which holds all that they say about theta.

    Labels pay back what a prior lacks: :math:`R_n(p) - R_n(p^*) \le D(p^* \| p)`, with equality as n grows.
    """
    check_count("labels", labels)
    check_same_size("prior", prior.mean, "true_prior", world.true_prior.mean)
    per_mean = Gaussian(world.true_prior.mean, world.noise / labels)
    away = prior.mean - world.true_prior.mean
    predicted = Gaussian(prior.mean, prior.covariance + per_mean.covariance)
    spread = per_mean.covariance + world.true_prior.covariance
    squared = float((predicted.precision * spread).sum() + away @ predicted.precision @ away)
    return 0.5 * (log_det(predicted.covariance) - log_det(per_mean.covariance) - world.size + squared)
