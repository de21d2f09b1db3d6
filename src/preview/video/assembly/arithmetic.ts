// What is reckoned of 16 bytes at once, in 16 bits in between.

// @ts-expect-error: a decorator of AssemblyScript's
@inline
export function none(): v128 {
  return i8x16.splat(0)
}

/**
 * one + (other - one) * share / 256, rounded; in 16 bits what overflows on the way comes back. The shares are 16-bit
 * numbers, of the lower and of the upper 8 bytes.
 */
// @ts-expect-error
@inline
export function between(one: v128, other: v128, lowShare: v128, highShare: v128): v128 {
  return i8x16.narrow_i16x8_u(
    moved(i16x8.extend_low_i8x16_u(one), i16x8.extend_low_i8x16_u(other), lowShare),
    moved(i16x8.extend_high_i8x16_u(one), i16x8.extend_high_i8x16_u(other), highShare),
  )
}

// @ts-expect-error
@inline
function moved(one: v128, other: v128, share: v128): v128 {
  const way = i16x8.mul(i16x8.sub(other, one), share)
  return i16x8.shr_u(i16x8.add(i16x8.add(i16x8.shl(one, 8), way), i16x8.splat(128)), 8)
}

/** one * share / 255, rounded. */
// @ts-expect-error
@inline
export function dim(one: v128, share: v128): v128 {
  const half = i16x8.splat(127)
  const low = i16x8.add(i16x8.extmul_low_i8x16_u(one, share), half)
  const high = i16x8.add(i16x8.extmul_high_i8x16_u(one, share), half)
  return i8x16.narrow_i16x8_u(
    i16x8.shr_u(i16x8.add(low, i16x8.shr_u(low, 8)), 8),
    i16x8.shr_u(i16x8.add(high, i16x8.shr_u(high, 8)), 8),
  )
}
