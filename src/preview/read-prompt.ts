// Reads from the prompt what can be drawn: actors, place, time, weather, colours, camera. Only words of the vocabulary
// count.

import type { Stance } from './cast/cast-list.js'
import { iconOfEmoji } from './cast/icons.js'
import { type Role, roleCalled, roleOf } from './cast/roles.js'
import { TINTS, type Tint } from './colour-words.js'
import { emojiAsWords } from './emoji-words.js'
import { isFigurative } from './figurative-words.js'
import { inEnglish } from './foreign-words.js'
import {
  BEACH,
  BLOSSOM,
  CLIFF,
  GREY,
  type Hour,
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

/** A person, an animal or a thing that the prompt names. */
export interface Actor extends Role {
  /** Its colour in the prompt. */
  readonly tint: Tint | undefined
  readonly count: number
}

export interface Reading {
  /** The picture's colours, in the order in which they were named; those of actors are not among them. */
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
  /** The first one is the subject. */
  readonly actors: readonly Actor[]
}

const MAX_ACTORS = 3
/** A prompt may be megabytes long; later words change nothing. */
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

/** Nouns that make the noun before them plural. */
const COMPANIES: ReadonlySet<string> = new Set(
  'family herd flock caravan pack swarm colony pair trio'.split(' '),
)

export function readPrompt(prompt: string): Reading {
  const start = inEnglish(emojiAsWords(prompt.slice(0, MAX_WORDS * 20)))
  const words: readonly string[] = (start.match(/[\p{L}\p{M}]+/gu) ?? []).slice(0, MAX_WORDS)
  const terms = words.flatMap((word, at) => [`${word}-${words[at + 1]}`, word])
  const found = <Key extends string>(table: Readonly<Record<Key, string>>) => firstOf(terms, table)

  const { actors, taken } = findActors(words, start)
  const tints = words.flatMap((word, at) =>
    // Not in "golden hour".
    taken.has(at) || words[at + 1] === 'hour' ? [] : (tintOf(word) ?? []),
  )
  const hasCliff = found({ cliff: CLIFF }) !== undefined
  // "A cliff by the sea" is the sea, seen with its cliff.
  const place = hasCliff && found({ sea: LOCATION_WORDS.sea }) !== undefined ? 'sea' : found(LOCATION_WORDS)
  const isInBlossom = found({ blossom: BLOSSOM }) !== undefined
  return {
    tints,
    hour: found(TIMES) ?? found({ grey: GREY }) ?? (place === 'space' ? 'night' : found(MOODS)),
    season: found(SEASONS),
    weather: found(WEATHERS),
    view: found(VIEWS),
    skyEvent: found(SKY_EVENTS),
    place,
    isMonochrome: /black[ -]and[ -]white|monochrome|greyscale|grayscale/.test(start),
    isInBlossom,
    hasCliff,
    isBeach: found({ beach: BEACH }) !== undefined,
    // Trees in blossom are part of the landscape.
    actors: inOrder([...actors, ...emojiActors(start)])
      .filter(({ icon }) => !isInBlossom || icon !== 'deciduous-tree')
      .slice(0, MAX_ACTORS),
  }
}

function findActors(
  words: readonly string[],
  prompt: string,
): { actors: Actor[]; taken: ReadonlySet<number> } {
  const actors: Actor[] = []
  const taken = new Set<number>()
  // The end of the noun before: its adjectives are not the next noun's.
  let ends = 0
  for (let at = 0; at < words.length && actors.length <= MAX_ACTORS; ) {
    const length = [3, 2, 1].find((span) => roleCalled(words.slice(at, at + span).join('-')) !== undefined)
    const found = length && roleCalled(words.slice(at, at + length).join('-'))
    if (!length || !found || isFigurative(words, at, prompt, actors.length > 0)) {
      at++
      continue
    }
    const first = Math.max(0, at - 3, ends)
    const before = words.slice(first, at)
    // "a red fox", "a red paper boat": the colour is the subject's. "red dunes, a fox": it is the picture's.
    const said = [at - 1, at - 2].find((place) => place >= ends && tintOf(words[place]) !== undefined)
    const isOwn = said !== undefined && !taken.has(said) && !between(prompt, words[said], words[at])
    if (isOwn) taken.add(said)
    // "a herd of cows", "a penguin family".
    const company = COMPANIES.has(words[at + length] ?? '') ? 1 : 0
    const count =
      before.map((word) => COUNTS.get(word)).find((number) => number !== undefined) ??
      (company === 1 ? 3 : undefined)
    const actor = {
      ...found.role,
      tint: isOwn ? tintOf(words[said]) : undefined,
      // "A couple" is a count by itself.
      count: count ?? COUNTS.get(words[at]) ?? (found.plural ? 3 : 1),
    }
    // "a chocolate cake", "a robot cat": of two nouns in a row the second is meant.
    if (ends === at && at > 0 && !between(prompt, words[at - 1], words[at])) actors.pop()
    if (!actors.some(({ icon }) => icon === actor.icon)) actors.push(actor)
    at += length + company
    ends = at
  }
  return { actors, taken }
}

/** Whether a comma or a full stop stands between two words that are near each other. */
function between(prompt: string, one = '', other = ''): boolean {
  const from = prompt.indexOf(one)
  const to = prompt.indexOf(other, from)
  return /[.,;:]/.test(prompt.slice(from, to))
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

/** Each once; people and animals before things and landmarks. */
function inOrder(actors: readonly Actor[]): readonly Actor[] {
  const once = actors.filter(({ icon }, index) => actors.findIndex((other) => other.icon === icon) === index)
  return [...once.filter(({ stance }) => !isAround(stance)), ...once.filter(({ stance }) => isAround(stance))]
}

const isAround = (stance: Stance): boolean => stance === 'thing' || stance === 'landmark'

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
