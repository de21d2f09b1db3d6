// Nouns that name no actor in their context: film terms ("crane shot", "key light", "the camera pans") and clothes of a
// person who is in the picture.

/** What follows the nouns below in film terms. */
const OF_THE_TRADE = new Set('shot shots light lighting view footage angle move movement eye'.split(' '))
const TRADE_NOUNS = new Set('key ring crane hero drone bird'.split(' '))
const GARMENTS = new Set(
  'coat jacket parka scarf socks gloves kimono tie hat glasses sunglasses dress shirt jeans boots boot heels gown helmet crown backpack'.split(
    ' ',
  ),
)
const WORN = new Set('in with wearing wears'.split(' '))
const WATCHED = new Set('the a an as how over him her them it out'.split(' '))

/** Whether the word at `at` names no actor. `after`: an actor was named before it. */
export function isFigurative(words: readonly string[], at: number, prompt: string, after: boolean): boolean {
  const word = words[at] ?? ''
  const next = words[at + 1] ?? ''
  if (TRADE_NOUNS.has(word) && OF_THE_TRADE.has(next)) return true
  if (word === 'bird' && words[at + 2] === 'eye') return true
  if (word === 'cherry' && next.startsWith('blossom')) return true
  if (word === 'camera')
    return (
      words[at - 1] === 'the' ||
      /camera (\w+ly )?(pan|push|pull|move|track|follow|tilt|zoom|dolly|orbit|glide|rise|drift)/i.test(prompt)
    )
  if (word === 'orange') return next !== ''
  // The verb: "they watch the sea".
  if (word === 'watch') return WATCHED.has(next)
  if (GARMENTS.has(word)) return after && words.slice(Math.max(0, at - 4), at).some((each) => WORN.has(each))
  return word === 'watches'
}
