"""A picture as shapes, and its SVG text."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from wormcast.pictures.geometry import Curve, Point

INK = "#222222"
FONT_SIZE = 11.0


@dataclass(frozen=True)
class Stroke:
    """A line or curve."""

    curve: Curve
    colour: str
    width: float
    dashed: bool = False
    arrow: bool = False
    opacity: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Disc:
    """A switch, a host, or a badge that stands for many hosts."""

    centre: Point
    radius: float
    fill: str
    text: str = ""
    text_colour: str = INK
    edge: str = INK
    edge_width: float = 0.6
    dashed: bool = False
    half_width: float | None = None
    """Of a badge, which is a rounded box and not a disc."""
    title: str = ""


@dataclass(frozen=True)
class Label:
    """A text, its middle (or left end) at a point."""

    at: Point
    text: str
    colour: str = INK
    size: float = FONT_SIZE
    anchor: str = "middle"
    backed: bool = False
    """Whether a white box lies behind it."""


@dataclass(frozen=True)
class Frame:
    """A ring or box behind a group of switches."""

    centre: Point
    radius: float
    text: str
    text_at: Point


@dataclass
class Scene:
    """Shapes from the back to the front: frames, strokes, discs, labels."""

    frames: list[Frame] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    discs: list[Disc] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def extent(self, margin: float = 24.0) -> tuple[float, float, float, float]:
        """Left, top, width and height of all there is, with a margin."""
        points: list[Point] = []
        for disc in self.discs:
            reach = disc.half_width or disc.radius
            points += [(disc.centre[0] - reach, disc.centre[1] - disc.radius)]
            points += [(disc.centre[0] + reach, disc.centre[1] + disc.radius)]
        for stroke in self.strokes:
            points += [stroke.curve.start, stroke.curve.end, *stroke.curve.samples(7)]
        for frame in self.frames:
            points += [
                (frame.centre[0] + sign * frame.radius, frame.centre[1] + sign * frame.radius)
                for sign in (-1, 1)
            ]
        for label in self.labels:
            width = text_width(label.text, label.size)
            left = label.at[0] - (width / 2 if label.anchor == "middle" else 0)
            points += [(left, label.at[1] - label.size), (left + width, label.at[1] + label.size / 2)]
        left, top = min(x for x, _ in points), min(y for _, y in points)
        right, bottom = max(x for x, _ in points), max(y for _, y in points)
        return left - margin, top - margin, right - left + 2 * margin, bottom - top + 2 * margin


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """About how wide a text is; digits and small letters of a sans-serif face."""
    return 0.58 * size * len(text)


def to_svg(scene: Scene) -> str:
    """The picture as SVG text."""
    left, top, width, height = scene.extent()
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="{FONT_SIZE:.0f}">',
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    rows += [_frame(frame) for frame in scene.frames]
    rows += [_stroke(stroke) for stroke in scene.strokes]
    rows += [_disc(disc) for disc in scene.discs]
    rows += [_label(label) for label in scene.labels]
    return "\n".join([*rows, "</svg>\n"])


def _frame(frame: Frame) -> str:
    ring = f'<circle cx="{frame.centre[0]:.1f}" cy="{frame.centre[1]:.1f}" r="{frame.radius:.1f}"'
    return f'{ring} fill="#f4f6f9" stroke="#d4dae3"/>'


def _stroke(stroke: Stroke) -> str:
    curve = stroke.curve
    if curve.is_straight:
        path = f"M{_pair(curve.start)} L{_pair(curve.end)}"
    else:
        path = f"M{_pair(curve.start)} C{_pair(curve.first)} {_pair(curve.second)} {_pair(curve.end)}"
    more = ' stroke-dasharray="4 3"' if stroke.dashed else ""
    if stroke.opacity < 1:
        more += f' stroke-opacity="{stroke.opacity:g}"'
    row = (
        f'<path d="{path}" fill="none" stroke="{stroke.colour}" stroke-width="{stroke.width:g}" '
        f'stroke-linecap="round"{more}>{_title(stroke.title)}</path>'
    )
    if stroke.arrow:
        points = " ".join(_pair(point) for point in arrow_head(curve, stroke.width))
        row += f'\n<polygon points="{points}" fill="{stroke.colour}"/>'
    return row


def arrow_head(curve: Curve, width: float) -> list[Point]:
    """The triangle at the end of a curve."""
    tip, back = curve.end, curve.at(0.92)
    dx, dy = tip[0] - back[0], tip[1] - back[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    dx, dy = dx / length, dy / length
    long, wide = min(11.0, 5 + 2 * width), min(6.5, 2 + 1.2 * width)
    foot = (tip[0] - long * dx, tip[1] - long * dy)
    return [tip, (foot[0] - wide * dy, foot[1] + wide * dx), (foot[0] + wide * dy, foot[1] - wide * dx)]


def _disc(disc: Disc) -> str:
    x, y = disc.centre
    paint = f'fill="{disc.fill}" stroke="{disc.edge}" stroke-width="{disc.edge_width:g}"'
    if disc.dashed:
        paint += ' stroke-dasharray="3 2"'
    title = _title(disc.title)
    if disc.half_width is None:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{disc.radius:g}" {paint}>{title}</circle>'
    else:
        shape = (
            f'<rect x="{x - disc.half_width:.1f}" y="{y - disc.radius:.1f}" width="{2 * disc.half_width:.1f}" '
            f'height="{2 * disc.radius:.1f}" rx="4" {paint}>{title}</rect>'
        )
    if disc.text:
        shape += "\n" + _label(Label(disc.centre, disc.text, disc.text_colour, disc_font(disc)))
    return shape


def disc_font(disc: Disc) -> float:
    """The size at which its text fits."""
    room = 1.7 * (disc.half_width or disc.radius)
    return min(FONT_SIZE, 1.2 * disc.radius, room / (0.58 * max(1, len(disc.text))))


def _label(label: Label) -> str:
    x, y = label.at
    row = ""
    if label.backed:
        half = text_width(label.text, label.size) / 2 + 1
        row = (
            f'<rect x="{x - half:.1f}" y="{y - label.size * 0.55:.1f}" width="{2 * half:.1f}" '
            f'height="{label.size * 1.1:.1f}" fill="#ffffff"/>\n'
        )
    return row + (
        f'<text x="{x:.1f}" y="{y + label.size * 0.36:.1f}" fill="{label.colour}" text-anchor="{label.anchor}" '
        f'font-size="{label.size:.1f}">{escape(label.text)}</text>'
    )


def _title(title: str) -> str:
    return f"<title>{escape(title)}</title>" if title else ""


def _pair(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
