import leven from 'leven'

/** The candidate that a mistyped word most likely means; undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates
    .map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const best = scored[0]
  return best !== undefined && best.distance <= Math.max(2, best.candidate.length * 0.4)
    ? best.candidate
    : undefined
}
