// Reads a prompt: figures (or a subject without a figure), place, time, weather, colours and camera. No grammar:
// punctuation and function words split a prompt into phrases, and the last word of a phrase is its head.
import { type Role, roleCalled, roleOf, type Stance } from './cast/cast-list.js'
import { iconOfEmoji } from './cast/figure.js'
import { TINTS, type Tint } from './colour.js'
import {
  ARTICLES,
  CONNECTIVES,
  type Hour,
  type Meaning,
  meaningOf,
  NEUTRAL,
  type Place,
  PREDICATES,
  PREPOSITIONS,
  type Season,
  type SkyEvent,
  signsAsWords,
  type View,
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
  readonly place: Place | undefined
  readonly isMonochrome: boolean
  readonly isInBlossom: boolean
  /** The first actor is the subject. Empty if the subject is unknown. */
  readonly actors: readonly Actor[]
  /** The subject in the words of the prompt, if no figure exists for it. */
  readonly unknownSubject: string | undefined
  /** Whether the prompt excludes something ("no people"). If so, the renderer adds nothing. */
  readonly hasExclusions: boolean
}

const MAX_ACTORS = 3
/** Maximum number of words and characters that are read, because a prompt may be megabytes long. */
const MAX_WORDS = 400
const MAX_CHARACTERS = 8_000
const COUNTS = new Map(
  [
    'two pair couple both',
    'three several row trio family caravan colony',
    'four',
    'many herd flock swarm pack',
  ].flatMap((words, at) => words.split(' ').map((word) => [word, at + 2] as const)),
)
const THINGS = '(?:(?:a|an|any|the)\\s+)?[\\p{L}-]+'
const LIST = `${THINGS}(?:\\s+(?:or|nor)\\s+${THINGS})*`
const EXCLUDED = new RegExp(
  `\\b(?:without\\s+${LIST}(?:\\s+and\\s+${THINGS})*|(?:no|not|never|nor)\\s+(?!only)${LIST})`,
  'giu',
)

export function readPrompt(prompt: string): Reading {
  const lower = signsAsWords(prompt.slice(0, MAX_CHARACTERS))
    .toLowerCase()
    .replace(/['’]s?\b/g, '')
  const text = lower.replace(EXCLUDED, ', ')
  const tokens = tokensOf(text)
  const first = <Field extends keyof Meaning>(field: Field): Meaning[Field] | undefined =>
    tokens.find(({ meaning }) => meaning?.[field] !== undefined)?.meaning?.[field]
  const phrases = phrasesOf(tokens)
  const place = first('place')
  const { actors, taken } = actorsOf(phrases)
  const emoji = actors.length === 0 ? emojiActors(text) : []
  const unknownSubject = emoji.length > 0 ? undefined : findUnknownSubject(phrases, place !== undefined)
  const isInBlossom = /blossom|sakura/.test(text)
  const visible = inOrder([...actors, ...emoji]).filter(
    ({ icon }) => !isInBlossom || icon !== 'deciduous-tree',
  )
  return {
    tints: tokens.flatMap((token) => (taken.has(token) || token.text === 'golden' ? [] : (token.tint ?? []))),
    hour: first('hour') ?? (place === 'space' ? 'night' : first('mood')),
    season:
      first('season') === 'winter' && lower.match(EXCLUDED)?.some((part) => part.includes('snow'))
        ? undefined
        : first('season'),
    weather: first('weather'),
    view: first('view'),
    skyEvent: first('skyEvent'),
    place,
    isMonochrome: /black[ -]and[ -]white|monochrome|gr[ea]yscale/.test(text),
    isInBlossom,
    actors: unknownSubject === undefined ? visible.slice(0, MAX_ACTORS) : [],
    unknownSubject,
    hasExclusions: lower.length !== text.length,
  }
}

/** One word, or up to three words that name one figure or one meaning. */
interface Token {
  readonly text: string
  readonly isAfterBreak: boolean
  readonly role: Role | undefined
  readonly isPlural: boolean
  readonly meaning: Meaning | undefined
  readonly tint: Tint | undefined
}

const BREAK = /[.,;:!?()|\n…–—]/

function tokensOf(text: string): readonly Token[] {
  const found = [...text.matchAll(/[\p{L}\p{M}]+/gu)].slice(0, MAX_WORDS)
  const words = found.map(({ 0: word }) => word)
  const tokens: Token[] = []
  for (let at = 0; at < words.length; ) {
    const joined = (length: number) => words.slice(at, at + length).join('-')
    const isKnown = (length: number) =>
      roleCalled(joined(length)) !== undefined || meaningOf(joined(length)) !== undefined
    const length = [3, 2].find((each) => at + each <= words.length && isKnown(each)) ?? 1
    const name = joined(length)
    const before = found[at - 1]
    const gap = before === undefined ? '' : text.slice(before.index + before[0].length, found[at]?.index)
    // In "a penguin family", the family is a number.
    const isCompany = COUNTS.has(name) && tokens.at(-1)?.role !== undefined && gap === ' '
    const called = isCompany || isFigurative(words, at, length, tokens, text) ? undefined : roleCalled(name)
    tokens.push({
      text: name.replaceAll('-', ' '),
      isAfterBreak: BREAK.test(gap),
      role: called?.role,
      isPlural: called?.plural ?? false,
      meaning: meaningOf(name),
      tint: Object.hasOwn(TINTS, name) ? TINTS[name] : undefined,
    })
    at += length
  }
  return tokens
}

const WORN =
  /^(coat|jacket|parka|scarf|socks|gloves|kimono|tie|hat|glasses|sunglasses|dress|shirt|jeans|boots?|heels|crown|backpack)$/
const FILM_TERM =
  /^(key|ring|crane|hero|drone|bird) (shot|shots|light|lighting|view|footage|angle|move|movement|eye|s eye)/
const CAMERA_MOVE = /camera (\w+ly )?(pan|push|pull|move|track|follow|tilt|zoom|dolly|orbit|glide|rise|drift)/

/** Whether a noun is a film term, a verb or clothes of an actor, and not an actor. */
function isFigurative(
  words: readonly string[],
  at: number,
  length: number,
  before: readonly Token[],
  text: string,
): boolean {
  const [word = '', next = ''] = words.slice(at, at + 2)
  if (length > 1) return false
  if (FILM_TERM.test(words.slice(at, at + 3).join(' '))) return true
  if (word === 'camera') return words[at - 1] === 'the' || CAMERA_MOVE.test(text)
  if (word === 'orange' || word === 'rose') return next !== '' && roleCalled(next) !== undefined
  if (word === 'watch' || word === 'watches') return /^(the|a|an|as|how|over|him|her|them|it|out)$/.test(next)
  const isDressed = words
    .slice(Math.max(0, at - 4), at)
    .some((each) => /^(in|with|wearing|wears)$/.test(each))
  return WORN.test(word) && isDressed && before.some(({ role }) => role !== undefined)
}

interface Phrase {
  readonly tokens: readonly Token[]
  /** `context` for words of place, time or style only. */
  readonly kind: 'actor' | 'unknown' | 'context'
  /** The words between the preceding phrase and this one. */
  readonly opening: readonly string[]
  readonly isAfterBreak: boolean
  /** The words after the head, such as a verb: "crosses". */
  readonly tail: readonly Token[]
}

function phrasesOf(tokens: readonly Token[]): readonly Phrase[] {
  const phrases: Phrase[] = []
  let opening: string[] = []
  for (let at = 0; at < tokens.length; ) {
    const start = at
    if (tokens[at]?.isAfterBreak) opening = []
    if (isSeparator(tokens[at])) {
      opening.push(tokens[at++]?.text ?? '')
      continue
    }
    do at++
    while (at < tokens.length && !tokens[at]?.isAfterBreak && !isSeparator(tokens[at]))
    const hasArticle = opening.some((word) => ARTICLES.has(word))
    let end = at
    while (end > start + 1 && isTail(tokens[end - 1], hasArticle)) end--
    const words = tokens.slice(start, end)
    const isAfterBreak = tokens[start - opening.length]?.isAfterBreak ?? start === 0
    phrases.push({ tokens: words, kind: kindOf(words), opening, isAfterBreak, tail: tokens.slice(end, at) })
    opening = []
  }
  return phrases
}

const isSeparator = ({ text, role }: Token = NO_TOKEN): boolean =>
  role === undefined && (ARTICLES.has(text) || PREPOSITIONS.has(text) || CONNECTIVES.has(text))
const NO_TOKEN: Token = {
  text: '',
  isAfterBreak: false,
  role: undefined,
  isPlural: false,
  meaning: undefined,
  tint: undefined,
}

/** Whether a word at the end of a phrase is a verb, or describes the picture: "a fox crosses", "a camel caravan". */
function isTail({ text, role, meaning }: Token = NO_TOKEN, hasArticle: boolean): boolean {
  if (role !== undefined || meaning?.place !== undefined) return false
  return (
    NEUTRAL.has(text) ||
    PREDICATES.has(text) ||
    /.{3}(ing|ed|ly)$/.test(text) ||
    (hasArticle && /..[^s]s$/.test(text) && meaning === undefined)
  )
}

function kindOf(words: readonly Token[]): Phrase['kind'] {
  const head = words.at(-1)
  if (head?.role !== undefined) return 'actor'
  const isContext =
    head === undefined || head.meaning !== undefined || head.tint !== undefined || NEUTRAL.has(head.text)
  if (isContext) return words.some(({ role }) => role !== undefined) ? 'actor' : 'context'
  const known = words.findLastIndex(({ role }) => role !== undefined)
  // "A dog playing football" has two actors; in "spaceship engine", the first noun only describes the second.
  return known >= 0 && words.slice(known + 1).some(({ text }) => /(ing|ed|s)$/.test(text))
    ? 'actor'
    : 'unknown'
}

function actorsOf(phrases: readonly Phrase[]): {
  readonly actors: readonly Actor[]
  readonly taken: ReadonlySet<Token>
} {
  const actors: Actor[] = []
  const taken = new Set<Token>()
  for (const { tokens, kind, opening, tail } of phrases) {
    if (kind !== 'actor') continue
    for (const [at, { role, isPlural, text }] of tokens.entries()) {
      // In "a robot cat", the second noun is the actor.
      if (role === undefined || tokens[at + 1]?.role !== undefined) continue
      const coloured = tokens.slice(Math.max(0, at - 3), at).findLast(({ tint }) => tint !== undefined)
      if (coloured !== undefined) taken.add(coloured)
      const before = tokens.slice(0, at).findLastIndex((token) => token.role !== undefined)
      const own = [...tokens.slice(before + 1, at), ...(at === tokens.length - 1 ? tail : [])].map(
        (token) => token.text,
      )
      const near = [...(before < 0 ? opening : []), ...own].map((word) => COUNTS.get(word))
      const count = near.find((number) => number !== undefined) ?? COUNTS.get(text) ?? (isPlural ? 3 : 1)
      if (!actors.some(({ icon }) => icon === role.icon))
        actors.push({ ...role, tint: coloured?.tint, count })
    }
  }
  return { actors, taken }
}

/** Returns the subject if no figure exists for it. Undefined if it is known, or for a list of styles and moods. */
function findUnknownSubject(phrases: readonly Phrase[], hasPlace: boolean): string | undefined {
  const isAdverbial = ({ opening }: Phrase) => opening.some((word) => PREPOSITIONS.has(word))
  const isSolid = ({ opening }: Phrase) => opening.some((word) => ARTICLES.has(word))
  const content = phrases.filter(({ kind }) => kind !== 'context')
  const lead = content.find((phrase) => !isAdverbial(phrase) || phrase.kind === 'actor')
  if (lead === undefined) return hasPlace ? undefined : textOf(content[0])
  if (lead.kind === 'actor') return undefined
  const next = phrases[phrases.indexOf(lead) + 1]
  const isMeasure = next?.opening[0] === 'of'
  // "A bucket of lemons" shows the lemons; "a map of Spain" stays one subject.
  if (isMeasure && next.kind === 'actor') return undefined
  const hasActor = content.some(({ kind }) => kind === 'actor')
  const isList = next === undefined || next.isAfterBreak
  if (hasActor && !isSolid(lead) && (isList || lead !== phrases[0])) return undefined
  if (hasPlace && !isSolid(lead) && lead !== phrases[0]) return undefined
  return isMeasure ? `${textOf(lead)} ${next.opening.join(' ')} ${textOf(next)}` : textOf(lead)
}

const textOf = (phrase: Phrase | undefined): string | undefined =>
  phrase?.tokens.map(({ text }) => text).join(' ')

function emojiActors(text: string): Actor[] {
  const mark = '[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
  const one = `\\p{Extended_Pictographic}${mark}`
  const clusters = text.match(new RegExp(`${one}(?:\\u200d${one})*`, 'gu')) ?? []
  return clusters.flatMap((cluster) => {
    const icon = iconOfEmoji(cluster)
    return icon === undefined ? [] : [{ ...roleOf(icon), tint: undefined, count: 1 }]
  })
}

/** Removes duplicates, and sorts people and animals before things and landmarks. */
function inOrder(actors: readonly Actor[]): readonly Actor[] {
  const isBackground = (stance: Stance) => stance === 'thing' || stance === 'landmark'
  const once = actors.filter(({ icon }, at) => actors.findIndex((other) => other.icon === icon) === at)
  return [
    ...once.filter(({ stance }) => !isBackground(stance)),
    ...once.filter(({ stance }) => isBackground(stance)),
  ]
}
