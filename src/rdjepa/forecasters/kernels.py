"""What an equation of two components, u and v, has to do at every point, compiled: kinetics, terms, derivatives.

`rdjepa.forecasters.cubic` and `squares` have the same as tensor operations, each of which passes over all points once;
here a point goes through all of them at once. Numbers differ by rounding alone (numba, strict IEEE arithmetic, one
thread). Everything is of one context. Arrays are NumPy's, in C order; kinetics are tuples, in the order of the
monomials 1, u, v, uu, uv, vv, uuu, uuv, uvv, vvv.
"""

from collections.abc import Callable

from numba import njit


def kept(function: Callable) -> Callable:
    """Compile a function at its first call, which takes a second; later processes find its code on disk.

    That is beside this file or in the user's cache; where neither can be written to, every process compiles anew.
    """
    try:
        return njit(error_model="numpy", nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(error_model="numpy", nogil=True)(function)


@kept
def _rate(k, u, v):  # type: ignore[no-untyped-def]
    """Return the polynomial at a point (Horner's rule)."""
    return (
        k[0]
        + u * (k[1] + u * (k[3] + u * k[6] + v * k[7]) + v * (k[4] + v * k[8]))
        + v * (k[2] + v * (k[5] + v * k[9]))
    )


@kept
def _within(value, low, high):  # type: ignore[no-untyped-def]
    """Return the nearest value within bounds; what is no number stays it."""
    value = low if value < low else value
    return high if value > high else value


@kept
def react(found_u, found_v, u, v, kinetics_u, kinetics_v, low, high, step):  # type: ignore[no-untyped-def]
    """Write states after the kinetics of a step, within bounds (low_u, low_v), (high_u, high_v): Runge-Kutta, order 4.

    The kinetics outside of the bounds are those of the nearest states within.
    """
    for x in range(len(u)):
        sum_u, sum_v = 0.0, 0.0
        rate_u, rate_v = 0.0, 0.0
        for share, weight in ((0.0, 1.0), (step / 2, 2.0), (step / 2, 2.0), (step, 1.0)):
            here_u = _within(u[x] + share * rate_u, low[0], high[0])
            here_v = _within(v[x] + share * rate_v, low[1], high[1])
            rate_u, rate_v = _rate(kinetics_u, here_u, here_v), _rate(kinetics_v, here_u, here_v)
            sum_u += weight * rate_u
            sum_v += weight * rate_v
        found_u[x] = _within(u[x] + step / 6 * sum_u, low[0], high[0])
        found_v[x] = _within(v[x] + step / 6 * sum_v, low[1], high[1])


@kept
def terms(shared, own, state, over, above, beside, distance_y, distance_x):  # type: ignore[no-untyped-def]
    """Write the means of the monomials of a state (2, Y, X) over so many points along each side, and of its Laplacian.

    These are (10, H, W) and (2, H, W). In both directions come first the first points of all that is averaged, then the
    second ones. Given are the neighbors of rows (2, Y) and of columns (2, X), and their squared distances.
    """
    _, rows, columns = shared.shape
    share = 1 / (over * over)
    for i in range(rows):
        for j in range(columns):
            one_u, one_v, uu, uv, vv = 0.0, 0.0, 0.0, 0.0, 0.0
            uuu, uuv, uvv, vvv, second_u, second_v = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for y in range(i, over * rows, rows):
                for x in range(j, over * columns, columns):
                    u, v = state[0, y, x], state[1, y, x]
                    one_u, one_v = one_u + u, one_v + v
                    uu, uv, vv = uu + u * u, uv + u * v, vv + v * v
                    uuu, uuv, uvv, vvv = uuu + u * u * u, uuv + u * u * v, uvv + u * v * v, vvv + v * v * v
                    up, down, left, right = above[0, y], above[1, y], beside[0, x], beside[1, x]
                    second_u += (state[0, up, x] - 2 * u + state[0, down, x]) / distance_y
                    second_u += (state[0, y, left] - 2 * u + state[0, y, right]) / distance_x
                    second_v += (state[1, up, x] - 2 * v + state[1, down, x]) / distance_y
                    second_v += (state[1, y, left] - 2 * v + state[1, y, right]) / distance_x
            shared[0, i, j], shared[1, i, j], shared[2, i, j] = 1.0, share * one_u, share * one_v
            shared[3, i, j], shared[4, i, j], shared[5, i, j] = share * uu, share * uv, share * vv
            shared[6, i, j], shared[7, i, j] = share * uuu, share * uuv
            shared[8, i, j], shared[9, i, j] = share * uvv, share * vvv
            own[0, i, j], own[1, i, j] = share * second_u, share * second_v


@kept
def turns(found, before, after, kinetics, step):  # type: ignore[no-untyped-def]
    """Write how changes go on through the kinetics of a step (2, 2, H, W), Runge-Kutta, order 4.

    Given are the means of the monomials (10, H, W) before and after; between both, the derivatives of the kinetics, a
    tuple for each component, are taken to change evenly.
    """
    for i in range(found.shape[2]):
        for j in range(found.shape[3]):
            first_uu, first_uv = _slopes(kinetics[0], before, i, j)
            first_vu, first_vv = _slopes(kinetics[1], before, i, j)
            last_uu, last_uv = _slopes(kinetics[0], after, i, j)
            last_vu, last_vv = _slopes(kinetics[1], after, i, j)
            rate_uu, rate_uv, rate_vu, rate_vv = first_uu, first_uv, first_vu, first_vv
            sum_uu, sum_uv, sum_vu, sum_vv = rate_uu, rate_uv, rate_vu, rate_vv
            for share, weight, end in ((step / 2, 2.0, 0.5), (step / 2, 2.0, 0.5), (step, 1.0, 1.0)):
                uu, uv = first_uu + end * (last_uu - first_uu), first_uv + end * (last_uv - first_uv)
                vu, vv = first_vu + end * (last_vu - first_vu), first_vv + end * (last_vv - first_vv)
                to_uu, to_uv, to_vu, to_vv = 1 + share * rate_uu, share * rate_uv, share * rate_vu, 1 + share * rate_vv
                rate_uu, rate_uv = uu * to_uu + uv * to_vu, uu * to_uv + uv * to_vv
                rate_vu, rate_vv = vu * to_uu + vv * to_vu, vu * to_uv + vv * to_vv
                sum_uu, sum_uv = sum_uu + weight * rate_uu, sum_uv + weight * rate_uv
                sum_vu, sum_vv = sum_vu + weight * rate_vu, sum_vv + weight * rate_vv
            found[0, 0, i, j], found[0, 1, i, j] = 1 + step / 6 * sum_uu, step / 6 * sum_uv
            found[1, 0, i, j], found[1, 1, i, j] = step / 6 * sum_vu, 1 + step / 6 * sum_vv


@kept
def _slopes(k, means, i, j):  # type: ignore[no-untyped-def]
    """Return the derivatives of the polynomial by u and v at a point, of the means of monomials (10, H, W)."""
    u, v, uu, uv, vv = means[1, i, j], means[2, i, j], means[3, i, j], means[4, i, j], means[5, i, j]
    by_u = k[1] + 2 * k[3] * u + k[4] * v + 3 * k[6] * uu + 2 * k[7] * uv + k[8] * vv
    by_v = k[2] + k[4] * u + 2 * k[5] * v + k[7] * uu + 2 * k[8] * uv + 3 * k[9] * vv
    return by_u, by_v


@kept
def turn(moved, by, before, own_before, after, own_after, share):  # type: ignore[no-untyped-def]
    """Multiply derivatives (2, H, 2, 11, W) by matrices (2, 2, H, W) in place, and add what the terms give them.

    A share of the monomials (10, H, W) and of each component's Laplacian (2, H, W), of those before and those after.
    """
    _, rows, _, count, columns = moved.shape
    for i in range(rows):
        for c in range(2):
            for n in range(count):
                given = before[n, i] if n < count - 1 else own_before[c, i]
                last = after[n, i] if n < count - 1 else own_after[c, i]
                moved_u, moved_v, into = moved[0, i, c, n], moved[1, i, c, n], moved[c, i, c, n]
                for j in range(columns):
                    into[j] += share * given[j]
                for j in range(columns):
                    u, v = moved_u[j], moved_v[j]
                    moved_u[j] = by[0, 0, i, j] * u + by[0, 1, i, j] * v
                    moved_v[j] = by[1, 0, i, j] * u + by[1, 1, i, j] * v
                for j in range(columns):
                    into[j] += share * last[j]
