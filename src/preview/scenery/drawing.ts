// The few SVG shapes everything is drawn from. Coordinates are stage units: the shorter side of the frame is 1000, so
// that one drawing serves every size and shape; numbers are cut to a tenth of a unit.

export interface Point {
  readonly x: number
  readonly y: number
}

export function path(data: string, fill: string, opacity = 1): string {
  return `<path d="${data}" fill="${fill}"${opacity === 1 ? '' : ` fill-opacity="${opacity}"`}/>`
}

export function polygon(points: readonly Point[], fill: string, opacity = 1): string {
  return path(`${lines(points)}Z`, fill, opacity)
}

export function circle(x: number, y: number, radius: number, fill: string, opacity = 1): string {
  const shade = opacity === 1 ? '' : ` fill-opacity="${opacity}"`
  return `<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}" fill="${fill}"${shade}/>`
}

export function box(x: number, y: number, width: number, height: number, fill: string, radius = 0): string {
  const round = radius === 0 ? '' : ` rx="${short(radius)}"`
  return `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"${round} fill="${fill}"/>`
}

/** Everything under a line, down to `bottom`. */
export function ground(line: readonly Point[], bottom: number, fill: string): string {
  const first = line[0]?.x ?? 0
  const last = line.at(-1)?.x ?? 0
  return path(`${lines(line)}L${short(last)} ${short(bottom)}L${short(first)} ${short(bottom)}Z`, fill)
}

/** A gradient from `top` to `bottom` (y in stage units), to be used as `url(#name)`. */
export function fade(
  name: string,
  top: number,
  bottom: number,
  stops: readonly (readonly [number, string])[],
): string {
  const list = stops.map(([offset, shade]) => `<stop offset="${offset}" stop-color="${shade}"/>`).join('')
  const place = `x1="0" x2="0" y1="${short(top)}" y2="${short(bottom)}" gradientUnits="userSpaceOnUse"`
  return `<linearGradient id="${name}" ${place}>${list}</linearGradient>`
}

export function short(value: number): string {
  return String(Math.round(value * 10) / 10)
}

function lines(points: readonly Point[]): string {
  return points.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`).join('')
}
