// Reads a prompt: figures (or a subject without a figure), place, time, weather, colours and camera. No grammar:
// punctuation and function words split a prompt into phrases, and the last word of a phrase is its head.
import { type Role, roleCalled } from './cast/cast-list.js'
import { TINTS, type Tint } from './colour.js'
import {
  ARTICLES,
  CONNECTIVES,
  emojiAsWords,
  type Meaning,
  meaningOf,
  NEUTRAL,
  PREPOSITIONS,
} from './vocabulary.js'

/** A person, an animal or a thing in the prompt. */
export interface Actor extends Role {
  /** The colour that the prompt gives the actor. */
  readonly tint: Tint | undefined
  readonly count: number
}

type Meanings = { readonly [Field in Exclude<keyof Meaning, 'mood'>]: Meaning[Field] | undefined }

export interface Reading extends Meanings {
  /** Colours of the picture, in the order of the prompt. Excludes the colours of actors. */
  readonly tints: readonly Tint[]
  readonly isMonochrome: boolean
  /** The first actor is the subject. Empty if the subject is unknown. */
  readonly actors: readonly Actor[]
  /** The subject in the words of the prompt, if no figure exists for it. */
  readonly unknownSubject: string | undefined
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
  const text = emojiAsWords(prompt.slice(0, MAX_CHARACTERS))
    .toLowerCase()
    .replace(/['’]s?\b/g, '')
    .replace(EXCLUDED, ', ')
  const tokens = tokensOf(text)
  const first = <Field extends keyof Meaning>(field: Field): Meaning[Field] | undefined =>
    tokens.find(({ meaning }) => meaning?.[field] !== undefined)?.meaning?.[field]
  const phrases = phrasesOf(tokens)
  const place = first('place')
  const { actors, taken } = actorsOf(phrases)
  const unknownSubject = findUnknownSubject(phrases, place !== undefined)
  return {
    tints: tokens.flatMap((token) => (taken.has(token) || token.text === 'golden' ? [] : (token.tint ?? []))),
    hour: first('hour') ?? (place === 'space' ? 'night' : first('mood')),
    season: first('season'),
    weather: first('weather'),
    view: first('view'),
    skyEvent: first('skyEvent'),
    place,
    isMonochrome: /black[ -]and[ -]white|monochrome|gr[ea]yscale/.test(text),
    actors: unknownSubject === undefined ? actors.slice(0, MAX_ACTORS) : [],
    unknownSubject,
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
const WORN =
  /^(coat|jacket|parka|scarf|socks|gloves|kimono|tie|hat|glasses|sunglasses|dress|shirt|jeans|boots?|heels|crown|backpack)$/

function tokensOf(text: string): readonly Token[] {
  const words = [...text.matchAll(/[\p{L}\p{M}]+/gu)].slice(0, MAX_WORDS)
  const tokens: Token[] = []
  for (let at = 0; at < words.length; ) {
    const joined = (length: number) =>
      words
        .slice(at, at + length)
        .map(([word]) => word)
        .join('-')
    const isKnown = (name: string) => (roleCalled(name) ?? meaningOf(name)) !== undefined || NEUTRAL.has(name)
    const length = [3, 2].find((each) => at + each <= words.length && isKnown(joined(each))) ?? 1
    const name = joined(length)
    const before = words[at - 1]
    const gap = before === undefined ? '' : text.slice(before.index + before[0].length, words[at]?.index)
    // In "a penguin family", the family is a number. In "a woman in a red coat", the coat is drawn with the woman.
    const isCompany = COUNTS.has(name) && tokens.at(-1)?.role !== undefined && gap === ' '
    const isWorn = WORN.test(name) && tokens.some(({ role }) => /stand|head|bust/.test(role?.stance ?? ''))
    const called = isCompany || isWorn ? undefined : roleCalled(name)
    tokens.push({
      text: name.replaceAll('-', ' '),
      isAfterBreak: BREAK.test(gap),
      role: called?.role,
      isPlural: called?.plural ?? false,
      meaning: meaningOf(name),
      tint: TINTS.get(name),
    })
    at += length
  }
  return tokens
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
    const hasArticle = opening.some((word) => ARTICLES.has(word)) || tokens[start]?.text === 'the camera'
    let end = at
    while (end > start + 1 && isTail(tokens[end - 1], hasArticle)) end--
    const words = tokens.slice(start, end)
    const isAfterBreak = tokens[start - opening.length]?.isAfterBreak ?? start === 0
    phrases.push({ tokens: words, kind: kindOf(words), opening, isAfterBreak, tail: tokens.slice(end, at) })
    opening = []
  }
  return phrases
}

const isSeparator = (token: Token | undefined): boolean =>
  token?.role === undefined &&
  [ARTICLES, PREPOSITIONS, CONNECTIVES].some((words) => words.has(token?.text ?? ''))

const isNeutral = ({ text }: Token): boolean => NEUTRAL.has(text.replaceAll(' ', '-'))

/** Whether a word at the end of a phrase is a verb, or describes the picture: "a fox crosses", "a camel caravan". */
function isTail(token: Token | undefined, hasArticle: boolean): boolean {
  if (token === undefined || token.role !== undefined || token.meaning?.place !== undefined) return false
  const { text, meaning } = token
  const isVerb =
    /.{3}(ing|ed|ly)$/.test(text) || (hasArticle && /..[^s]s$/.test(text) && meaning === undefined)
  return isNeutral(token) || isVerb
}

function kindOf(words: readonly Token[]): Phrase['kind'] {
  const head = words.at(-1)
  const known = words.findLastIndex(({ role }) => role !== undefined)
  if (head?.meaning !== undefined || head?.tint !== undefined || head === undefined || isNeutral(head))
    return known < 0 ? 'context' : 'actor'
  // "A dog playing football" has two actors; in "spaceship engine", the first noun only describes the second.
  const isActor = known >= 0 && words.slice(known + 1).some(({ text }) => /(ing|ed|s)$/.test(text))
  return head.role !== undefined || isActor ? 'actor' : 'unknown'
}

/** Returns the actors, people and animals before things and landmarks, and the words that are their colours. */
function actorsOf(phrases: readonly Phrase[]) {
  const actors: Actor[] = []
  const taken = new Set<Token>()
  for (const { tokens, kind, opening, tail } of phrases) {
    let words = kind === 'actor' ? [...opening] : []
    for (const [at, token] of tokens.entries()) {
      const { role, isPlural, text } = token
      words.push(text)
      // In "a robot cat", the second noun is the actor.
      if (kind !== 'actor' || role === undefined || tokens[at + 1]?.role !== undefined) continue
      const coloured = tokens.slice(Math.max(0, at - 3), at).findLast(({ tint }) => tint !== undefined)
      if (coloured !== undefined) taken.add(coloured)
      if (at === tokens.length - 1) words.push(...tail.map((each) => each.text))
      const count = words.map((word) => COUNTS.get(word)).find(Boolean) ?? (isPlural ? 3 : 1)
      if (!actors.some(({ icon }) => icon === role.icon))
        actors.push({ ...role, tint: coloured?.tint, count })
      words = []
    }
  }
  const isBackground = ({ stance }: Actor) => stance === 'thing' || stance === 'landmark'
  return { actors: actors.sort((one, other) => +isBackground(one) - +isBackground(other)), taken }
}

/** Returns the subject if no figure exists for it. Undefined if it is known, or for a list of styles and moods. */
function findUnknownSubject(phrases: readonly Phrase[], hasPlace: boolean): string | undefined {
  const content = phrases.filter(({ kind }) => kind !== 'context')
  const hasActor = content.some(({ kind }) => kind === 'actor')
  const lead = content.find(
    ({ kind, opening }) => kind === 'actor' || !opening.some((word) => PREPOSITIONS.has(word)),
  )
  const textOf = (phrase?: Phrase) => phrase?.tokens.map(({ text }) => text).join(' ')
  if (lead === undefined) return hasPlace ? undefined : textOf(content[0])
  const next = phrases[phrases.indexOf(lead) + 1]
  // "A bucket of lemons" shows the lemons.
  if (lead.kind === 'actor' || (next?.opening[0] === 'of' && next.kind === 'actor')) return undefined
  // "Golden reflections, a fox": words without an article describe a picture that has an actor or a place.
  const isFirst = lead === phrases[0]
  const isDescription = isFirst ? hasActor && (next?.isAfterBreak ?? true) : hasActor || hasPlace
  return isDescription && !lead.opening.some((word) => ARTICLES.has(word)) ? undefined : textOf(lead)
}
