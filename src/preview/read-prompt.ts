// Reads a prompt: figures (or a subject without one), place, time, weather, colours and camera. No grammar: punctuation and
// function words split a prompt into phrases, and the last noun of a phrase is its head. A subject that is not known word for
// word becomes a card with its words, and the figure of its nearest noun.
import type { Oklch } from 'culori'
import { EMOJI } from './emoji.mjs'
import {
  ages,
  type Hour,
  joining,
  keysByWord,
  type Meaning,
  meaningOf,
  neutral,
  signs,
  tints,
} from './words.js'

/** A person, an animal or a thing in the prompt. */
export interface Actor {
  /** The name of its figure. */
  readonly name: string
  /** The colour that the prompt gives it. */
  readonly tint: Oklch | undefined
  readonly count: number
}

export interface Reading extends Omit<Meaning, 'hour' | 'mood'> {
  readonly hour: Hour | undefined
  /** Colours of the picture, in the order of the prompt. Excludes the colours of actors. */
  readonly tints: readonly Oklch[]
  readonly isMonochrome: boolean
  /** At most two. The first is the subject. Empty if there is a card. */
  readonly actors: readonly Actor[]
  /** The subject in the words of the prompt if it is not drawn, and the figure of its nearest noun. */
  readonly card?: { readonly title: string; readonly name: string | undefined }
  /** Whether the prompt names a place that is not drawn. */
  readonly isElsewhere: boolean
}

/** Maximum number of characters that are read, because a prompt may be megabytes long. */
const MAX_CHARACTERS = 8_000

const COUNTS = keysByWord({
  2: 'two pair couple both',
  3: 'three several row trio family caravan colony',
  4: 'four',
  5: 'many herd flock swarm pack',
})
const THINGS = '(?:(?:a|an|any|the)\\s+)?[\\p{L}-]+'
const LIST = `${THINGS}(?:\\s+(?:or|nor)\\s+${THINGS})*`
/** What the prompt excludes, and owners: "a lighthouse keeper's cottage" shows a lighthouse and a cottage. */
const UNSEEN = new RegExp(
  `\\b(?:without\\s+${LIST}(?:\\s+and\\s+${THINGS})*|(?:no|not|never|nor)\\s+(?!only)${LIST}|[\\p{L}]+['’]s(?![-\\p{L}]))`,
  'giu',
)
/** Function words, and the words after them up to the next one or punctuation. */
const WORD = `(?<![\\p{L}\\p{M}\\p{N}])(?!(?:${joining})\\b)[\\p{L}\\p{M}\\p{N}'’-]+`
const PHRASE = new RegExp(`((?:\\b(?:${joining})\\b\\s*)*)(${WORD}(?:\\s+${WORD})*)`, 'giu')
const ARTICLE =
  /\b(an?|the|one|some|this|these|my|his|her|their|its|our|your|two|three|four|five|many|several|both)\b/i
const PREPOSITION =
  /\b(in|on|at|by|near|next|under|over|above|below|behind|beside|between|through|across|into|onto|from|to|for|with|against|along|around|inside|outside|before|after|during|within|towards?|among|like|as|off|up|down|past)\b/i
const WHERE = /\b(in|inside|at|by|near|on|under|behind)\b(?! (her|his|their))/i

const PICTOGRAPH = '\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
const EMOJIS = new RegExp(`${PICTOGRAPH}(?:\\u200d(?:${PICTOGRAPH}|[♀♂]\\ufe0f?))*`, 'gu')

/** Replaces each emoji. `change` gets the words of its name, without the skin tone. */
export const replaceEmojis = (text: string, change: (name: string, emoji: string) => string): string =>
  text.replace(EMOJIS, (emoji) => {
    const [first = ''] = emoji
    const plain = emoji.replace(/[\ufe0f\u{1f3fb}-\u{1f3ff}]/gu, '')
    return change((EMOJI.characters[plain] ?? EMOJI.characters[first] ?? 'emoji').replaceAll('-', ' '), first)
  })

/** With references, a prompt in which nothing is recognized needs no card. */
export function readPrompt(prompt: string, hasReferences = false): Reading {
  const named = replaceEmojis(
    prompt.slice(0, MAX_CHARACTERS),
    (name, emoji) => `, ${signs.get(emoji) ?? name}, `,
  )
  const text = named.replace(UNSEEN, ', ')
  const all = Array.from(text.matchAll(PHRASE), ([, opening = '', title = '']) => phraseOf(opening, title))
  const words = all.flatMap((phrase) => phrase.words)
  // Of two words with the same field, the first wins.
  const { mood, ...meaning }: Meaning = Object.assign({}, ...words.map((word) => word.meaning).reverse())
  const { place, hour = place === 'space' ? 'night' : mood } = meaning
  const phrases = all.filter(({ nouns }) => nouns.length > 0)
  const subjects = phrases.filter(({ opening }) => !PREPOSITION.test(opening))
  // References are subjects too: only the first words can name another one that is not known.
  const isFirst = (phrase: Phrase) => phrase === all[0]
  const isLead = (phrase: Phrase) =>
    phrase.isKnown || (ARTICLE.test(phrase.opening) && (!hasReferences || isFirst(phrase)))
  // A place is not a subject, and words without an article only describe it.
  const isPlace = place !== undefined && !/table|studio/.test(place)
  const lead =
    subjects.find(isLead) ??
    (isPlace || hasReferences ? subjects.find(isFirst) : (subjects[0] ?? phrases[0])) ??
    phrases.find(({ isKnown }) => isKnown) ??
    (hasReferences ? undefined : isPlace ? all[0] : phraseOf('', text.trim().slice(0, 80)))
  const actors = lead?.isKnown === true ? actorsOf(phrases, words) : []
  return {
    ...meaning,
    hour,
    tints: words.flatMap(({ tint }) =>
      tint === undefined || actors.some((actor) => actor.tint === tint) ? [] : tint,
    ),
    isMonochrome: /black[ -]and[ -]white|monochrome|gr[ea]yscale/i.test(text),
    actors,
    ...(lead?.isKnown === false && { card: cardOf(lead, all[all.indexOf(lead) + 1]) }),
    isElsewhere:
      place === undefined && phrases.some(({ isKnown, opening }) => !isKnown && WHERE.test(opening)),
  }
}

/** One word, or up to four words that name one figure or one meaning. */
interface Word {
  readonly text: string
  /** The name of its figure. */
  readonly name: string | undefined
  readonly isPlural: boolean
  readonly meaning: Meaning | undefined
  readonly tint: Oklch | undefined
  /** Whether it only describes: it cannot be the subject. */
  readonly isPlain: boolean
}

/** Returns a word, and what may be its singular. */
const formsOf = (word: string): readonly string[] =>
  [
    word,
    ...[/s$/, /es$/].map((end) => word.replace(end, '')),
    word.replace(/ies$/, 'y'),
    word.replace(/men$/, 'man'),
  ].filter((each) => each === word || word.length > 3)

const lookUp = <Value>(table: Readonly<Record<string, Value>>, key = ''): Value | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined

function wordCalled(text: string): Word {
  const form = formsOf(text).find((each) => lookUp(EMOJI.figures, each) ?? lookUp(EMOJI.synonyms, each))
  const [meaning, tint] = [meaningOf(text), tints.get(text)]
  return {
    text,
    name: lookUp(EMOJI.synonyms, form) ?? form,
    isPlural: form !== text,
    meaning,
    tint,
    isPlain: (tint ?? meaning) !== undefined || neutral.has(text) || ages.has(text),
  }
}

const stanceOf = (word: Word | undefined): string => EMOJI.figures[word?.name ?? '']?.stance ?? ''

interface Phrase {
  /** The function words before it. */
  readonly opening: string
  /** As in the prompt. */
  readonly title: string
  readonly words: readonly Word[]
  /** The words that are not of place, time or style. Empty for a phrase that only describes the picture. */
  readonly nouns: readonly Word[]
  /** Whether its subject is a figure. */
  readonly isKnown: boolean
}

function phraseOf(opening: string, title: string): Phrase {
  const parts = title.toLowerCase().split(/[^\p{L}\p{M}\p{N}]+/u)
  const words: Word[] = []
  while (parts.length > 0) {
    const joined = [4, 3, 2, 1].map((length) => wordCalled(parts.slice(0, length).join('-')))
    const word = joined.find(({ name, isPlain }, at) => at === 3 || name !== undefined || isPlain)
    if (word !== undefined) words.push(word)
    parts.splice(0, word?.text.split('-').length)
  }
  const verb = ARTICLE.test(opening) ? /..[^s]s$|.{3}(ing|ed|ly)$/ : /.{3}(ing|ed|ly)$/
  const isVerb = ({ text, name, isPlain }: Word, at: number) =>
    at > 0 && !isPlain && name === undefined && verb.test(text)
  const found = words.filter((word, at) => !word.isPlain && !isVerb(word, at))
  // In "quiet street", one unknown word before a place describes it.
  const isDescription = found.length === 1 && !found[0]?.name && words.at(-1)?.meaning?.place !== undefined
  const nouns = isDescription ? [] : found
  // In "old men playing chess", the men are the subject.
  const end = words.findIndex((word, at) => isVerb(word, at) && words[at - 1]?.name !== undefined)
  const [head, before] = nouns.filter((word) => end < 0 || words.indexOf(word) < end).reverse()
  // "Chocolate cake" is another thing than a cake, and an old cook another person than a cook.
  const isCompound = before?.name && before.name !== head?.name && words[words.indexOf(before) + 1] === head
  const isOther = /face|bust/.test(stanceOf(head)) && words.some(({ text }) => ages.has(text))
  return { opening, title, words, nouns, isKnown: head?.name !== undefined && !isCompound && !isOther }
}

/** Returns the actors, people and animals before things and landmarks. */
function actorsOf(phrases: readonly Phrase[], all: readonly Word[]): readonly Actor[] {
  const found: (Actor & { stance: string })[] = []
  for (const { words, nouns, opening } of phrases.filter(({ isKnown }) => isKnown)) {
    const [number] = [...opening.toLowerCase().split(/\s+/), ...words.map(({ text }) => text)]
      .map((text) => Number(COUNTS.get(text)))
      .filter((count) => count > 0)
    let isFirst = true
    for (const word of nouns) {
      const { name, isPlural } = word
      if (name === undefined || found.some((actor) => actor.name === name)) continue
      const tint = words.slice(0, words.indexOf(word)).findLast((each) => each.tint)?.tint
      const [wearer, stance] = [found.at(-1), stanceOf(word)]
      // In "a woman in a red coat", only the colour of the coat is drawn.
      if (wearer !== undefined && /\bin\b/i.test(opening) && stance === 'thing')
        Object.assign(wearer, { tint: wearer.tint ?? tint })
      // The number belongs to the first actor of a phrase: "two dogs playing football".
      else found.push({ name, tint, stance, count: (isFirst && number) || (isPlural ? 3 : 1) })
      isFirst = false
    }
  }
  const isBackground = ({ stance }: { stance: string }) => Number(/thing|landmark/.test(stance))
  const isFace = all.some(({ meaning }) => meaning?.view === 'close' || meaning?.place === 'table')
  const actors = found.sort((one, other) => isBackground(one) - isBackground(other)).slice(0, 2)
  return actors.map(({ name, tint, count }) => {
    // A woman, a man or a person is a whole figure that does what the prompt says.
    const verbs = [...all.map(({ text }) => text), ...(isFace ? [] : ['stand'])]
    const done = verbs.map((verb) => EMOJI.actions[`${name}-${verb}`]).find((each) => each !== undefined)
    return { name: done ?? name, tint, count }
  })
}

/** Returns the words of a subject, with what it is "of", and the figure of its nearest noun. */
function cardOf(lead: Phrase, next: Phrase | undefined) {
  const isOf = next !== undefined && /^of\b/i.test(next.opening)
  const { nouns, words } = isOf && lead.nouns.length === 0 ? next : lead
  const related = nouns.map(({ text }) =>
    lookUp(
      EMOJI.near,
      formsOf(text).find((form) => lookUp(EMOJI.near, form)),
    ),
  )
  return {
    title: isOf ? `${lead.title} ${next.opening}${next.title}` : lead.title,
    name: [...related, ...words.map((word) => word.name)].findLast((each) => each !== undefined),
  }
}
