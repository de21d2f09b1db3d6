// The innermost loops of film drawing, in AssemblyScript (a dialect of TypeScript that becomes WebAssembly):
// compile.mjs makes ../kernel.ts of them. With 16 bytes to an instruction a 1080p frame takes 5 to 10 ms; the same loops
// in JavaScript took 28 to 57 ms, longer than its encoding.
//
// Memory is the caller's: all arguments are addresses, and whoever calls has made sure that 48 bytes after every array
// may be read.

import { between, dim, none } from './arithmetic.ts'

export { split, survey } from './layer.ts'

/** What a layer shows in a tile: nothing, something, or all that there is to see. As the cells say it. */
const EMPTY: i32 = 0
const OPAQUE: i32 = 2

/**
 * Draws one plane of a frame, `blocks` tiles of 16 columns wide. For each tile drawing begins at the uppermost layer that
 * covers it wholly, so that a hidden sky costs nothing, and a layer that is empty there is passed over.
 *
 * `views`: for each of the `count` layers, the furthest first, eight 32-bit numbers: where its values are, its alpha, how
 * far apart its rows lie, its plan of rows, its plan of blocks, its cells (see `survey`), how many of them are in a row;
 * the last is of no meaning. The first layer covers everything. `marks` is room for a byte for each layer.
 *
 * The plan of rows: for each row of the target two numbers, the row of the layer and the share of the row below it in 1/256.
 * The plan of blocks: for each 48 bytes: where in the layer's row it begins (32-bit, padded to 16), then for each of its 16
 * columns the distance from there (0 to 30, rising), then for each the share of the next column in 1/256.
 */
export function compose(
  views: usize,
  count: i32,
  marks: usize,
  target: usize,
  targetStride: i32,
  height: i32,
  blocks: i32,
): void {
  for (let top = 0; top < height; top += 16) {
    const bottom = min(top + 16, height)
    for (let block = 0; block < blocks; block++) {
      let index = count
      let covered = EMPTY
      do {
        index--
        covered = coverage(views + <usize>(index * 32), top, bottom, block)
        store<u8>(marks + <usize>index, covered)
      } while (index > 0 && covered !== OPAQUE)
      const out = target + <usize>(top * targetStride + block * 16)
      for (; index < count; index++) {
        covered = load<u8>(marks + <usize>index)
        if (covered === EMPTY) continue
        const view = views + <usize>(index * 32)
        lay(
          load<usize>(view),
          covered === OPAQUE ? 0 : load<usize>(view, 4),
          load<i32>(view, 8),
          load<usize>(view, 12),
          load<usize>(view, 16) + <usize>(block * 48),
          top,
          bottom,
          out,
          targetStride,
        )
      }
    }
  }
}

/** By the cells that a tile is drawn from. */
function coverage(view: usize, top: i32, bottom: i32, block: i32): i32 {
  const rows = load<usize>(view, 12)
  const plan = load<usize>(view, 16) + <usize>(block * 48)
  const cells = load<usize>(view, 20)
  const cellsAcross = load<i32>(view, 24)
  const begin = load<i32>(plan)
  const firstColumn = begin >> 4
  const lastColumn = (begin + <i32>load<u8>(plan, 31) + 1) >> 4
  const firstRow = load<i32>(rows + <usize>(top * 8)) >> 4
  const lastRow = (load<i32>(rows + <usize>((bottom - 1) * 8)) + 1) >> 4
  const first = <i32>load<u8>(cells + <usize>(firstRow * cellsAcross + firstColumn))
  for (let row = firstRow; row <= lastRow; row++) {
    for (let column = firstColumn; column <= lastColumn; column++) {
      if (<i32>load<u8>(cells + <usize>(row * cellsAcross + column)) !== first) return 1
    }
  }
  return first
}

/** Lays a tile of one layer onto a target. `alpha` is 0 where it covers everything; values are multiplied by it otherwise. */
function lay(
  values: usize,
  alpha: usize,
  stride: i32,
  rows: usize,
  plan: usize,
  top: i32,
  bottom: i32,
  target: usize,
  targetStride: i32,
): void {
  const at = load<i32>(plan)
  const near = v128.load(plan, 16)
  const next = i8x16.add(near, i8x16.splat(1))
  const low = i16x8.extend_low_i8x16_u(v128.load(plan, 32))
  const high = i16x8.extend_high_i8x16_u(v128.load(plan, 32))
  let out = target
  // A row of the layer is mixed across once: what was the lower of two for one row of the target is the upper one
  // for the next, or the same again.
  let valueLine = -2
  let valueBelow = -2
  let upper = none()
  let lower = none()
  let veilLine = -2
  let veilBelow = -2
  let veilUpper = none()
  let veilLower = none()
  for (let row = top; row < bottom; row++, out += targetStride) {
    const entry = rows + <usize>(row * 8)
    const line = load<i32>(entry)
    const part = load<i32>(entry, 4)
    const rest = i16x8.splat(<i16>part)
    let veil = none()
    if (alpha !== 0) {
      const source = alpha + <usize>at
      if (line !== veilLine) {
        veilUpper = line === veilBelow ? veilLower : across(source, line, stride, near, next, low, high)
        veilLine = line
      }
      veil = veilUpper
      if (part !== 0) {
        if (line + 1 !== veilBelow) {
          veilLower = across(source, line + 1, stride, near, next, low, high)
          veilBelow = line + 1
        }
        veil = between(veilUpper, veilLower, rest, rest)
      }
      if (!v128.any_true(veil)) continue
    }
    const source = values + <usize>at
    if (line !== valueLine) {
      upper = line === valueBelow ? lower : across(source, line, stride, near, next, low, high)
      valueLine = line
    }
    let value = upper
    if (part !== 0) {
      if (line + 1 !== valueBelow) {
        lower = across(source, line + 1, stride, near, next, low, high)
        valueBelow = line + 1
      }
      value = between(upper, lower, rest, rest)
    }
    v128.store(out, alpha === 0 ? value : i8x16.add_sat_u(value, dim(v128.load(out), v128.not(veil))))
  }
}

/** 16 values of a row, between its columns. */
// @ts-expect-error
@inline
function across(
  source: usize,
  line: i32,
  stride: i32,
  near: v128,
  next: v128,
  low: v128,
  high: v128,
): v128 {
  const from = source + <usize>(line * stride)
  const left = v128.load(from)
  const right = v128.load(from, 16)
  return between(pick(left, right, near), pick(left, right, next), low, high)
}

/** Of 32 values those at the given places; a place out of reach of one half gives 0 there. */
// @ts-expect-error
@inline
function pick(left: v128, right: v128, places: v128): v128 {
  return v128.or(
    i8x16.swizzle(left, places),
    i8x16.swizzle(right, i8x16.sub(places, i8x16.splat(16))),
  )
}

/** `share` 0 to 256: the frame becomes that much of what is held. `length` is a multiple of 16. */
export function melt(frame: usize, held: usize, length: i32, share: i32): void {
  const part = i16x8.splat(<i16>share)
  for (let at: usize = 0; at < <usize>length; at += 16) {
    v128.store(frame + at, between(v128.load(frame + at), v128.load(held + at), part, part))
  }
}
