"""Plain-text description of a system: equations rendered from the code of the kinetics, ranges, numerics, notes."""

from rdjepa.pde.system import System


def describe(system: System) -> str:
    """Return a plain text of a few dozen lines; the equations are in LaTeX."""
    numerics = system.numerics
    pooled = f", block means of {numerics.size} x {numerics.size}" if numerics.size != numerics.stored else ""
    lines = [f"{system.title} ({system.name})", system.reference, "", *(f"  {side}" for side in system.latex()), ""]
    kinds = [box for regime in system.regimes.values() for box in regime.boxes if box.derive]
    for box in kinds:
        drawn = ", ".join(f"{name} [{low:.3g}, {high:.3g}]" for name, (low, high) in box.ranges.items())
        lines.append(f"  {box.name or 'drawn'}: {drawn}")
    for coefficient in () if kinds else system.coefficients:
        spans = []
        for name, regime in system.regimes.items():
            ranges = [box.ranges[coefficient.name] for box in regime.boxes]
            shown = [f"{low:g}" if low == high else f"[{low:g}, {high:g}]" for low, high in ranges]
            spans.append(f"{name} {' or '.join(dict.fromkeys(shown))}")
        lines.append(f"  {coefficient.name:8} {'; '.join(spans)}   {coefficient.description}")
    lines += [
        "",
        f"side {numerics.length:g}, {numerics.stored} x {numerics.stored} points{pooled}, {numerics.boundary}",
        f"{numerics.method}, Laplacian {numerics.laplacian}, dt at most {numerics.dt:g}, "
        f"{numerics.frames} frames from t = {numerics.first:g} to {numerics.last:g}",
    ]
    for name, distribution in system.regimes.items():
        families = ", ".join(family.name for family in distribution.initial_conditions)
        lines.append(f"{name}: initial states {families}")
    lines += [f"screen: {getattr(screen, '__name__', screen)}" for screen in system.screens]
    lines += ["", *(f"- {note}" for note in system.notes)]
    return "\n".join(lines)
