// The three loops over bytes that all drawing of film frames ends in. They take about as long as the encoding itself
// (10 to 30 ms a frame at 720p, 14 ms for H.264), so they are plain and allocate nothing. Positions and shares come
// from the sampler.

/** Into `line`, from `from` to `to`: the row at `start` and the one below it, whose share is in 1/256. */
export function mixRows(
  source: Uint8Array,
  start: number,
  stride: number,
  share: number,
  from: number,
  to: number,
  line: Uint8Array,
): void {
  const under = start + stride
  for (let column = from; column < to; column++) {
    const above = source[start + column] as number
    line[column] = above + ((((source[under + column] as number) - above) * share + 128) >> 8)
  }
}

/** A line that covers what it lies on, onto the row of the frame that begins at `start`. */
export function layOpaque(
  target: Uint8Array,
  start: number,
  left: number,
  right: number,
  line: Uint8Array,
  offset: number,
  columns: Int32Array,
  shares: Uint8Array,
): void {
  for (let column = left; column < right; column++) {
    const at = offset + (columns[column] as number)
    const value = line[at] as number
    target[start + column] =
      value + ((((line[at + 1] as number) - value) * (shares[column] as number) + 128) >> 8)
  }
}

/** A line multiplied by its own transparency, `veil`, over what is there. */
export function layMixed(
  target: Uint8Array,
  start: number,
  left: number,
  right: number,
  line: Uint8Array,
  veil: Uint8Array,
  offset: number,
  columns: Int32Array,
  shares: Uint8Array,
): void {
  for (let column = left; column < right; column++) {
    const at = offset + (columns[column] as number)
    const cover = veil[at] as number
    const next = veil[at + 1] as number
    if ((cover | next) === 0) continue
    const share = shares[column] as number
    const lower = line[at] as number
    const value = lower + ((((line[at + 1] as number) - lower) * share + 128) >> 8)
    if ((cover & next) === 255) {
      target[start + column] = value
      continue
    }
    const open = 255 - (cover + (((next - cover) * share + 128) >> 8))
    const sum = value + ((((target[start + column] as number) * open + 127) * 257) >> 16)
    // Rounding may add up to 256, which a byte would wrap to black.
    target[start + column] = Math.min(255, sum)
  }
}
