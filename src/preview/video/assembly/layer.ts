// Pixels become layers: see ../layer.ts.
import { dim, none } from './arithmetic.ts'

/**
 * Makes I420 with transparency of `rgba` (not premultiplied): BT.709 in limited range, every value times its transparency.
 * Width and height are even and at least 8. `chroma` receives the two colour differences and their transparency, one
 * plane behind the other at `apart` bytes; whoever calls has made room for 4 bytes behind every plane.
 *
 * Exact integers: coefficients in 1/32768 for luma, which are all even in 1/65536, and in 1/65536 for the sums of four
 * pixels, where alpha counts twice because its factor would not fit into 16 bits.
 */
export function split(
  rgba: usize,
  luma: usize,
  alpha: usize,
  chroma: usize,
  apart: usize,
  width: i32,
  height: i32,
): void {
  const blue = i16x8(-6596, -22188, 28784, 16448, -6596, -22188, 28784, 16448)
  const red = i16x8(28784, -26145, -2639, 16448, 28784, -26145, -2639, 16448)
  for (let row = 0; row < height; row += 2) {
    const above = rgba + <usize>(row * width * 4)
    const below = above + <usize>(width * 4)
    for (let column = 0; column < width; column += 8) {
      // The last block lies over the one before where the width is no multiple of 8.
      const at = min(column, width - 8)
      const from = <usize>(at * 4)
      const to = <usize>(row * width + at)
      const half = chroma + <usize>(((row * width) >> 2) + (at >> 1))
      let a = v128.load(above + from)
      let b = v128.load(above + from, 16)
      let c = v128.load(below + from)
      let d = v128.load(below + from, 16)
      // Most of a plane is empty.
      if (!v128.any_true(v128.or(v128.or(a, b), v128.or(c, d)))) {
        store<u64>(luma + to, 0)
        store<u64>(luma + to + <usize>width, 0)
        store<u64>(alpha + to, 0)
        store<u64>(alpha + to + <usize>width, 0)
        store<u32>(half, 0)
        store<u32>(half + apart, 0)
        store<u32>(half + apart * 2, 0)
        continue
      }
      a = cover(a)
      b = cover(b)
      c = cover(c)
      d = cover(d)
      v128.store64_lane(luma + to, bytes(light(a), light(b)), 0)
      v128.store64_lane(luma + to + <usize>width, bytes(light(c), light(d)), 0)
      v128.store64_lane(alpha + to, bytes(i32x4.shr_u(a, 24), i32x4.shr_u(b, 24)), 0)
      v128.store64_lane(alpha + to + <usize>width, bytes(i32x4.shr_u(c, 24), i32x4.shr_u(d, 24)), 0)
      const left = four(a, c)
      const right = four(b, d)
      const none = i32x4.splat(0)
      v128.store32_lane(half, bytes(difference(left, right, blue), none), 0)
      v128.store32_lane(half + apart, bytes(difference(left, right, red), none), 0)
      // Twice the sum of four: (2 * sum + 4) / 8 is (sum + 2) / 4.
      const twice = v128.shuffle<i16>(left, right, 3, 7, 11, 15, 3, 7, 11, 15)
      const mean = i16x8.shr_u(i16x8.add(twice, i16x8.splat(4)), 3)
      v128.store32_lane(half + apart * 2, i8x16.narrow_i16x8_u(mean, mean), 0)
    }
  }
}

/** Four pixels times their transparency. */
// @ts-expect-error
@inline
function cover(pixels: v128): v128 {
  const share = i8x16.swizzle(pixels, i8x16(3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15))
  return dim(pixels, v128.or(share, i32x4.splat(0xff000000)))
}

/** The luma of four pixels, as 32-bit numbers. */
// @ts-expect-error
@inline
function light(pixels: v128): v128 {
  const factors = i16x8(5983, 20127, 2032, 2056, 5983, 20127, 2032, 2056)
  const low = i32x4.dot_i16x8_s(i16x8.extend_low_i8x16_u(pixels), factors)
  const high = i32x4.dot_i16x8_s(i16x8.extend_high_i8x16_u(pixels), factors)
  return i32x4.shr_s(i32x4.add(pairs(low, high), i32x4.splat(16384)), 15)
}

/** Two blocks of two by two pixels, added up: red, green, blue and twice the alpha of each, as 16-bit numbers. */
// @ts-expect-error
@inline
function four(above: v128, below: v128): v128 {
  const low = i16x8.add(i16x8.extend_low_i8x16_u(above), i16x8.extend_low_i8x16_u(below))
  const high = i16x8.add(i16x8.extend_high_i8x16_u(above), i16x8.extend_high_i8x16_u(below))
  const sum = i16x8.add(
    v128.shuffle<i64>(low, high, 0, 2),
    v128.shuffle<i64>(low, high, 1, 3),
  )
  return i16x8.mul(sum, i16x8(1, 1, 1, 2, 1, 1, 1, 2))
}

/** A colour difference of four blocks, as 32-bit numbers. */
// @ts-expect-error
@inline
function difference(left: v128, right: v128, factors: v128): v128 {
  const sums = pairs(i32x4.dot_i16x8_s(left, factors), i32x4.dot_i16x8_s(right, factors))
  return i32x4.shr_s(i32x4.add(sums, i32x4.splat(131072)), 18)
}

/** The sums of neighbours. */
// @ts-expect-error
@inline
function pairs(low: v128, high: v128): v128 {
  return i32x4.add(
    v128.shuffle<i32>(low, high, 0, 2, 4, 6),
    v128.shuffle<i32>(low, high, 1, 3, 5, 7),
  )
}

/** Eight 32-bit numbers from 0 to 255 as the lower eight bytes. */
// @ts-expect-error
@inline
function bytes(low: v128, high: v128): v128 {
  const words = i16x8.narrow_i32x4_s(low, high)
  return i8x16.narrow_i16x8_u(words, words)
}

/**
 * Sets a byte for each cell of 16 x 16 values, row by row: 0 where all are 0, 2 where all are 255, else 1. `alpha` is
 * `width` wide, with 16 readable bytes behind it; a width that is no multiple of 16 has a narrower last cell.
 */
export function survey(alpha: usize, width: i32, height: i32, cells: usize): void {
  const full = i8x16.splat(-1)
  for (let top = 0; top < height; top += 16) {
    const bottom = min(top + 16, height)
    for (let left = 0; left < width; left += 16) {
      // Columns 0 to 15 by whose numbers are less than what is left of the row.
      const inside = i8x16.lt_u(
        i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
        i8x16.splat(<i8>min(width - left, 16)),
      )
      let all = full
      let any = none()
      for (let row = top; row < bottom; row++) {
        const values = v128.load(alpha + <usize>(row * width + left))
        all = v128.and(all, values)
        any = v128.or(any, values)
      }
      const isEmpty = !v128.any_true(v128.and(any, inside))
      const isOpaque = i8x16.all_true(i8x16.eq(v128.or(all, v128.not(inside)), full))
      store<u8>(cells++, isEmpty ? 0 : isOpaque ? 2 : 1)
    }
  }
}
