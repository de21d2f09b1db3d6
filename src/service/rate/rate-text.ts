import type { RateLimit } from './contract.js'

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** As people write it: `100/10s`. */
export function formatRate({ requests, windowMs }: RateLimit): string {
  const [unit, ms] = UNITS.find(([, each]) => windowMs % each === 0) ?? ['ms', 1]
  return `${requests}/${windowMs / ms}${unit}`
}
