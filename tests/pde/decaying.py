"""Linear decay: one function for the tests of the integrators, so that each scheme is compiled for it once."""


def decay(u, v, rate):
    return -rate * u, -rate * v
