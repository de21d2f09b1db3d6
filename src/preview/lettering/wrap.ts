// Breaking the caption into lines.

/**
 * At most `most` lines no wider than `room`, broken at spaces; a word too long for a line is broken where it ends.
 * What does not fit ends in an ellipsis. `measure` gives the width of a text in the unit of `room`.
 */
export function wrapText(
  text: string,
  room: number,
  most: number,
  measure: (text: string) => number,
): string[] {
  const lines: string[] = []
  let rest = text.trim()
  while (rest !== '' && lines.length < most) {
    const whole = longestFit(rest, room, measure)
    const last = lines.length === most - 1
    if (whole === rest) {
      lines.push(rest)
      break
    }
    if (last) {
      lines.push(`${longestFit(rest, room - measure('…'), measure).trimEnd()}…`)
      break
    }
    const space = rest[whole.length] === ' ' ? whole.length : whole.lastIndexOf(' ')
    const line = space > 0 ? rest.slice(0, space) : whole
    lines.push(line.trimEnd())
    rest = rest.slice(line.length).trimStart()
  }
  return lines
}

/** The longest beginning that fits, found by halving: a prompt may be megabytes long. Never less than one character. */
function longestFit(text: string, room: number, measure: (text: string) => number): string {
  // Beyond this many characters nothing fits in any line we draw, so that measuring stays cheap.
  const start = text.slice(0, 400)
  if (start === text && measure(start) <= room) return start
  let fits = 1
  let tooLong = start.length + 1
  while (tooLong - fits > 1) {
    const half = (fits + tooLong) >> 1
    if (measure(start.slice(0, half)) <= room) fits = half
    else tooLong = half
  }
  return start.slice(0, fits)
}
