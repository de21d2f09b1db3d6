// The innermost loops of film drawing, in AssemblyScript (a dialect of TypeScript that becomes WebAssembly):
// compile.mjs makes ../kernel.ts of them. With 16 bytes to an instruction a 1080p frame takes 5 to 10 ms; the same loops
// in JavaScript took 28 to 57 ms, longer than its encoding.
//
// Memory is the caller's: all arguments are addresses, and whoever calls has made sure that 48 bytes after every array
// may be read.

/**
 * Lays the rows `top` to `bottom` and the blocks of 16 columns `from` to `to` of one channel of a layer onto a target.
 *
 * `rows`: for each row of the target two 32-bit numbers, the row of the layer and the share of the row below it in 1/256.
 * `blocks`: for each block 48 bytes: where in the layer's row it begins (32-bit, padded to 16), then for each of its 16
 * columns the distance from there (0 to 30), then for each the share of the next column in 1/256.
 * `alpha` is 0 where the layer covers everything; values are multiplied by it otherwise.
 */
export function lay(
  values: usize,
  alpha: usize,
  stride: i32,
  target: usize,
  targetStride: i32,
  rows: usize,
  blocks: usize,
  top: i32,
  bottom: i32,
  from: i32,
  to: i32,
): void {
  for (let row = top; row < bottom; row++) {
    const entry = rows + <usize>(row * 8)
    const source = load<i32>(entry) * stride
    const share = load<i32>(entry, 4)
    for (let block = from; block < to; block++) {
      const plan = blocks + <usize>(block * 48)
      const at = source + load<i32>(plan)
      const out = target + <usize>(row * targetStride + block * 16)
      if (alpha === 0) {
        v128.store(out, sample(values + <usize>at, stride, share, plan))
        continue
      }
      const veil = sample(alpha + <usize>at, stride, share, plan)
      if (!v128.any_true(veil)) continue
      const value = sample(values + <usize>at, stride, share, plan)
      v128.store(out, i8x16.add_sat_u(value, dim(v128.load(out), v128.not(veil))))
    }
  }
}

/** 16 values between two rows and between their columns. */
// @ts-expect-error: a decorator of AssemblyScript's
@inline
function sample(source: usize, stride: i32, share: i32, plan: usize): v128 {
  let left = v128.load(source)
  let right = v128.load(source, 16)
  if (share !== 0) {
    const part = i8x16.splat(<i8>share)
    left = between(left, v128.load(source + <usize>stride), part)
    right = between(right, v128.load(source + <usize>stride, 16), part)
  }
  const near = v128.load(plan, 16)
  const next = i8x16.add(near, i8x16.splat(1))
  return between(pick(left, right, near), pick(left, right, next), v128.load(plan, 32))
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

/** one + (other - one) * share / 256, rounded; in 16 bits what overflows on the way comes back. */
// @ts-expect-error
@inline
function between(one: v128, other: v128, share: v128): v128 {
  const half = i16x8.splat(128)
  const low = i16x8.add(
    i16x8.sub(
      i16x8.shl(i16x8.extend_low_i8x16_u(one), 8),
      i16x8.extmul_low_i8x16_u(one, share),
    ),
    i16x8.add(i16x8.extmul_low_i8x16_u(other, share), half),
  )
  const high = i16x8.add(
    i16x8.sub(
      i16x8.shl(i16x8.extend_high_i8x16_u(one), 8),
      i16x8.extmul_high_i8x16_u(one, share),
    ),
    i16x8.add(i16x8.extmul_high_i8x16_u(other, share), half),
  )
  return i8x16.narrow_i16x8_u(i16x8.shr_u(low, 8), i16x8.shr_u(high, 8))
}

/** one * share / 255, rounded. */
// @ts-expect-error
@inline
function dim(one: v128, share: v128): v128 {
  const half = i16x8.splat(127)
  const low = i16x8.add(i16x8.extmul_low_i8x16_u(one, share), half)
  const high = i16x8.add(i16x8.extmul_high_i8x16_u(one, share), half)
  return i8x16.narrow_i16x8_u(
    i16x8.shr_u(i16x8.add(low, i16x8.shr_u(low, 8)), 8),
    i16x8.shr_u(i16x8.add(high, i16x8.shr_u(high, 8)), 8),
  )
}

/** `share` 0 to 256: the frame becomes that much of what is held. `length` is a multiple of 16. */
export function melt(frame: usize, held: usize, length: i32, share: i32): void {
  const part = i8x16.splat(<i8>share)
  for (let at: usize = 0; at < <usize>length; at += 16) {
    v128.store(frame + at, between(v128.load(frame + at), v128.load(held + at), part))
  }
}
