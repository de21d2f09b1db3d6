import leven from 'leven'

/** The candidate that a mistyped word most likely means; undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates
    .map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const best = scored[0]
  return best !== undefined && best.distance <= maxDistance(word, best.candidate) ? best.candidate : undefined
}

/** In a short word two other letters make another word (logs, login); two swapped or missing ones do not (lsit, hi). */
function maxDistance(word: string, candidate: string): number {
  const isShort = Math.min(word.length, candidate.length) <= 4
  const isSame = lettersOf(word) === lettersOf(candidate) || candidate.startsWith(word)
  return isShort && !isSame ? 1 : Math.max(2, candidate.length * 0.4)
}

const lettersOf = (word: string): string => [...word.toLowerCase()].sort().join('')
