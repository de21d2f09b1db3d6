// Parses a prompt: actors (or a subject without a figure), place, time, weather, colours and camera.
import { type Role, roleCalled, roleOf, type Stance } from './cast/cast-list.js'
import { iconOfEmoji } from './cast/figure.js'
import { TINTS, type Tint } from './colour.js'
import {
  excludesThings,
  findUnknownSubject,
  isModifierOf,
  type PromptWord,
  splitNegations,
} from './subject.js'
import {
  BEACH,
  BLOSSOM,
  CLIFF,
  emojiAsWords,
  GREY,
  type Hour,
  inEnglish,
  LOCATION_WORDS,
  type Location,
  MOODS,
  SEASONS,
  type Season,
  SKY_EVENTS,
  type SkyEvent,
  TIMES,
  VIEWS,
  type View,
  WEATHERS,
  type Weather,
} from './vocabulary.js'

/** A person, an animal or a thing in the prompt. */
export interface Actor extends Role {
  /** The colour that the prompt gives the actor. */
  readonly tint: Tint | undefined
  readonly count: number
}

export interface Reading {
  /** Colours of the picture, in the order of the prompt. Excludes the colours of actors. */
  readonly tints: readonly Tint[]
  readonly hour: Hour | undefined
  readonly season: Season | undefined
  readonly weather: Weather | undefined
  readonly view: View | undefined
  readonly skyEvent: SkyEvent | undefined
  readonly place: Location | undefined
  readonly isMonochrome: boolean
  readonly isBeach: boolean
  readonly hasCliff: boolean
  readonly isInBlossom: boolean
  /** The first actor is the subject. Empty if the subject is unknown. */
  readonly actors: readonly Actor[]
  /** The subject in the words of the prompt, if there is no figure for it. */
  readonly unknownSubject: string | undefined
  /** Whether the prompt excludes things ("no people"). If so, the renderer adds nothing. */
  readonly hasExclusions: boolean
}

const MAX_ACTORS = 3
/** Maximum number of words that are parsed, because a prompt may be megabytes long. */
const MAX_WORDS = 400
const COUNT_WORDS = {
  2: 'two pair couple both',
  3: 'three several row',
  4: 'four',
  5: 'many herd flock swarm',
}
const COUNTS: ReadonlyMap<string | undefined, number> = new Map(
  Object.entries(COUNT_WORDS).flatMap(([count, words]) =>
    words.split(' ').map((word) => [word, Number(count)]),
  ),
)

const PRONOUNS: ReadonlySet<string> = new Set('she her he him'.split(' '))
/** Nouns that make the noun before them plural: "a penguin family". */
const COMPANIES: ReadonlySet<string> = new Set(
  'family herd flock caravan pack swarm colony pair trio'.split(' '),
)

export function readPrompt(prompt: string): Reading {
  const { text, excluded } = splitNegations(prompt.slice(0, MAX_WORDS * 20))
  const start = inEnglish(emojiAsWords(text))
  const words = wordsOf(start)
  const terms = words.flatMap(({ text: word }, at) => [`${word}-${words[at + 1]?.text}`, word])
  const found = <Key extends string>(table: Readonly<Record<Key, string>>) => firstOf(terms, table)

  const { actors, taken } = findActors(words, start)
  const tints = words.flatMap(({ text: word }, at) =>
    // "Golden" in "golden hour" is not a colour.
    taken.has(at) || words[at + 1]?.text === 'hour' ? [] : (tintOf(word) ?? []),
  )
  const hasCliff = found({ cliff: CLIFF }) !== undefined
  // In "a cliff by the sea", the place is the sea, with a cliff.
  const place = hasCliff && found({ sea: LOCATION_WORDS.sea }) !== undefined ? 'sea' : found(LOCATION_WORDS)
  const isInBlossom = found({ blossom: BLOSSOM }) !== undefined
  const visibleActors = inOrder([...actors, ...emojiActors(start)])
  // Emoji are the subject if the prompt contains no actor.
  const hasSubject = actors.length === 0 && visibleActors.length > 0
  const unknownSubject = hasSubject ? undefined : findUnknownSubject(words, place !== undefined)
  const season = found(SEASONS)
  const weather = found(WEATHERS)
  return {
    tints,
    hour: found(TIMES) ?? found({ grey: GREY }) ?? (place === 'space' ? 'night' : found(MOODS)),
    season: season === 'winter' && excluded.includes('snow') ? undefined : season,
    weather,
    view: found(VIEWS),
    skyEvent: found(SKY_EVENTS),
    place,
    isMonochrome: /black[ -]and[ -]white|monochrome|greyscale|grayscale/.test(start),
    isInBlossom,
    hasCliff,
    isBeach: found({ beach: BEACH }) !== undefined,
    // Trees in blossom are not actors, because the landscape contains them.
    actors:
      unknownSubject !== undefined
        ? []
        : visibleActors.filter(({ icon }) => !isInBlossom || icon !== 'deciduous-tree').slice(0, MAX_ACTORS),
    unknownSubject,
    hasExclusions: excludesThings(excluded),
  }
}

function wordsOf(text: string): readonly PromptWord[] {
  const matches = [...text.matchAll(/\p{L}[\p{L}\p{M}]*/gu)].slice(0, MAX_WORDS)
  let end = 0
  return matches.map(({ 0: word, index }, at) => {
    const gap = text.slice(end, index)
    end = index + word.length
    const kind = roleCalled(word) === undefined ? contextOf(word, matches[at + 1]?.[0]) : 'actor'
    return { text: word, isAfterBreak: gap !== '-' && BREAK.test(gap), kind }
  })
}

const BREAK = /[.,;:!?()|\n…、。，–—-]/
const wordSet = (tables: readonly Readonly<Record<string, string>>[]): ReadonlySet<string> =>
  new Set(tables.flatMap((table) => Object.values(table)).flatMap((list) => list.split(' ')))
const CONTEXT_WORDS = wordSet([TIMES, MOODS, { GREY }, SEASONS, WEATHERS, SKY_EVENTS, VIEWS])
const PLACE_WORDS = wordSet([LOCATION_WORDS])

function contextOf(word: string, next: string | undefined): PromptWord['kind'] {
  const isIn = (set: ReadonlySet<string>) => set.has(word) || set.has(`${word}-${next}`)
  if (isIn(PLACE_WORDS)) return 'place'
  return isIn(CONTEXT_WORDS) || tintOf(word) !== undefined || word === 'hour' ? 'context' : 'other'
}

/**
 * Finds the actors. Also corrects the kinds of the words: a noun in a film term becomes `context`, and a noun that
 * describes another noun becomes `other`.
 */
function findActors(
  words: readonly PromptWord[],
  prompt: string,
): { readonly actors: Actor[]; readonly taken: ReadonlySet<number> } {
  const texts = words.map(({ text }) => text)
  const actors: Actor[] = []
  const taken = new Set<number>()
  // End of the previous noun. Adjectives before this position do not describe the next noun.
  let lastNounEnd = 0
  const isApart = (from: number, to: number) =>
    words.slice(from + 1, to + 1).some((word) => word.isAfterBreak)
  for (let at = 0; at < words.length && actors.length <= MAX_ACTORS; ) {
    const length = [3, 2, 1].find((span) => roleCalled(texts.slice(at, at + span).join('-')) !== undefined)
    const found = length && roleCalled(texts.slice(at, at + length).join('-'))
    if (!length || !found) {
      at++
      continue
    }
    const noun = words.slice(at, at + length)
    if (isFigurative(texts, at, prompt, actors.length > 0)) {
      for (const word of noun.slice(0, 1)) word.kind = 'context'
      at++
      continue
    }
    // For example "a herd of cows" or "a penguin family".
    const company = COMPANIES.has(texts[at + length] ?? '') ? 1 : 0
    // A plural or a pronoun before an unknown word does not describe that word: "dogs play", "her hair".
    const canDescribe = !found.plural && company === 0 && !PRONOUNS.has(texts[at] ?? '')
    if (canDescribe && isModifierOf(words, at + length)) {
      for (const word of noun) word.kind = 'other'
      at += length
      continue
    }
    for (const word of noun) word.kind = 'actor'
    const before = texts.slice(Math.max(0, at - 3, lastNounEnd), at)
    // In "a red fox" and "a red paper boat", the colour belongs to the actor. In "red dunes, a fox", it belongs to the
    // picture.
    const colourAt = [at - 1, at - 2].find(
      (place) => place >= lastNounEnd && tintOf(texts[place]) !== undefined,
    )
    const isOwn = colourAt !== undefined && !taken.has(colourAt) && !isApart(colourAt, at)
    if (isOwn) taken.add(colourAt)
    const count =
      before.map((word) => COUNTS.get(word)).find((number) => number !== undefined) ??
      (company === 1 ? 3 : undefined)
    const actor = {
      ...found.role,
      tint: isOwn ? tintOf(texts[colourAt]) : undefined,
      // A word such as "couple" already contains the count.
      count: count ?? COUNTS.get(texts[at]) ?? (found.plural ? 3 : 1),
    }
    // In "a chocolate cake" and "a robot cat", the second of the two nouns is the actor.
    if (lastNounEnd === at && at > 0 && !isApart(at - 1, at)) actors.pop()
    if (!actors.some(({ icon }) => icon === actor.icon)) actors.push(actor)
    at += length + company
    lastNounEnd = at
  }
  return { actors, taken }
}

function emojiActors(prompt: string): Actor[] {
  const clusters =
    prompt.match(
      /\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*(\u200d\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*)*/gu,
    ) ?? []
  return clusters.flatMap((cluster) => {
    const icon = iconOfEmoji(cluster)
    return icon === undefined ? [] : [{ ...roleOf(icon), tint: undefined, count: 1 }]
  })
}

/** Removes duplicates, and sorts people and animals before things and landmarks. */
function inOrder(actors: readonly Actor[]): readonly Actor[] {
  const once = actors.filter(({ icon }, index) => actors.findIndex((other) => other.icon === icon) === index)
  return [
    ...once.filter(({ stance }) => !isBackground(stance)),
    ...once.filter(({ stance }) => isBackground(stance)),
  ]
}

const isBackground = (stance: Stance): boolean => stance === 'thing' || stance === 'landmark'

function tintOf(word = ''): Tint | undefined {
  return Object.hasOwn(TINTS, word) ? TINTS[word] : undefined
}

function firstOf<Key extends string>(
  terms: readonly string[],
  table: Readonly<Record<Key, string>>,
): Key | undefined {
  const rows = (Object.entries(table) as [Key, string][]).map(([key, list]) => ({
    key,
    list: list.split(' '),
  }))
  for (const term of terms) {
    const row = rows.find(({ list }) => list.includes(term))
    if (row !== undefined) return row.key
  }
  return undefined
}

/** Words that follow the nouns of `FILM_TERMS`. */
const AFTER_FILM_TERM = new Set('shot shots light lighting view footage angle move movement eye'.split(' '))
const FILM_TERMS = new Set('key ring crane hero drone bird'.split(' '))
const GARMENTS = new Set(
  (
    'coat jacket parka scarf socks gloves kimono tie hat glasses sunglasses dress shirt jeans boots boot ' +
    'heels gown helmet crown backpack'
  ).split(' '),
)
const WORN = new Set('in with wearing wears'.split(' '))
const WATCHED = new Set('the a an as how over him her them it out'.split(' '))

/**
 * Whether the noun at `at` is not an actor, but a film term or clothes of an actor. `after`: whether an actor comes
 * before the noun.
 */
function isFigurative(words: readonly string[], at: number, prompt: string, after: boolean): boolean {
  const word = words[at] ?? ''
  const next = words[at + 1] ?? ''
  if (FILM_TERMS.has(word) && AFTER_FILM_TERM.has(next)) return true
  if (word === 'bird' && words[at + 2] === 'eye') return true
  if (word === 'cherry' && next.startsWith('blossom')) return true
  if (word === 'camera')
    return (
      words[at - 1] === 'the' ||
      /camera (\w+ly )?(pan|push|pull|move|track|follow|tilt|zoom|dolly|orbit|glide|rise|drift)/i.test(prompt)
    )
  if (word === 'orange') return next !== ''
  // "Watch" as a verb: "they watch the sea".
  if (word === 'watch') return WATCHED.has(next)
  if (GARMENTS.has(word)) return after && words.slice(Math.max(0, at - 4), at).some((each) => WORN.has(each))
  return word === 'watches'
}
