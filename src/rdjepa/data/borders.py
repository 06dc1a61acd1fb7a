"""What fields show at their borders: whether they continue on the opposite side."""

import numpy as np

PERIODIC, WALLS, UNKNOWN = "periodic", "walls", "unknown"
SMOOTH = 0.35  # jumps inside that are larger, of those between unrelated points, are as large as any
QUIET = 0.25  # a border that varies less, of the whole field's standard deviation, tells nothing
FLAT = 1e-6  # jumps inside that are smaller, of the standard deviation, are rounding: nothing changes along the axis
FITS, JUMPS = 1.5, 2.5  # jump across the border, of those inside: at most the first, or at least the second


def borders(fields: np.ndarray) -> tuple[str, str]:
    """Say for rows and columns of (T, H, W, C) whether opposite borders fit together.

    The root mean square of jumps from the last row or column to the first is compared with that of jumps between
    neighbors inside. The component with the clearest answer counts.

    Returns:
        For y and for x "periodic", "walls" (of whatever kind, or an excerpt of something larger), or "unknown" where
        nothing happens at the border or along the axis, or where neighbors differ as much as distant points.
    """
    return _axis(np.asarray(fields), 1), _axis(np.asarray(fields), 2)


def _axis(fields: np.ndarray, axis: int) -> str:
    found = []
    if fields.shape[axis] < 2:
        return UNKNOWN
    for component in range(fields.shape[-1]):
        lines = np.moveaxis(fields[..., component], axis, 0).astype(np.float64)
        spread = float(lines.std())
        edges = lines[[0, -1]]
        inside = float(np.sqrt(np.mean(np.square(np.diff(lines, axis=0)))))
        across = float(np.sqrt(np.mean(np.square(lines[0] - lines[-1]))))
        if (
            inside <= FLAT * spread
            or inside > SMOOTH * np.sqrt(2) * spread
            or (across < JUMPS * inside and edges.std() < QUIET * spread)
        ):
            continue
        ratio = across / inside
        if ratio <= FITS or ratio >= JUMPS:
            found.append((abs(np.log(max(ratio, 1e-9) / np.sqrt(FITS * JUMPS))), PERIODIC if ratio <= FITS else WALLS))
    return max(found)[1] if found else UNKNOWN
