// Reads a prompt: figures (or a subject without a figure), place, time, weather, colours and camera. No grammar:
// punctuation and function words split a prompt into phrases, and the last word of a phrase is its head.
import { type Role, roleCalled } from './cast/cast-list.js'
import { TINTS, type Tint } from './colour.js'
import {
  ARTICLES,
  CONNECTIVES,
  emojiAsWords,
  type Hour,
  keysByWord,
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

export interface Reading extends Omit<Meaning, 'hour' | 'mood'> {
  readonly hour: Hour | undefined
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
const COUNTS = keysByWord({
  2: 'two pair couple both',
  3: 'three several row trio family caravan colony',
  4: 'four',
  5: 'many herd flock swarm pack',
})
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
  // Of two words with the same field, the first wins.
  const { mood, ...meaning }: Meaning = Object.assign({}, ...tokens.map((token) => token.meaning).reverse())
  const phrases = phrasesOf(tokens)
  const { actors, taken } = actorsOf(phrases)
  const unknownSubject = findUnknownSubject(phrases, meaning.place !== undefined)
  return {
    ...meaning,
    hour: meaning.hour ?? (meaning.place === 'space' ? 'night' : mood),
    tints: tokens.flatMap((token) => (taken.has(token) || token.text === 'golden' ? [] : (token.tint ?? []))),
    isMonochrome: /black[ -]and[ -]white|monochrome|gr[ea]yscale/.test(text),
    actors: unknownSubject === undefined ? actors.slice(0, MAX_ACTORS) : [],
    unknownSubject,
  }
}

/** One word, or up to three words, joined by hyphens, that name one figure or one meaning. */
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
  // Gaps and words in turn.
  const parts = text.split(/([\p{L}\p{M}]+)/u, 2 * MAX_WORDS)
  const words = parts.filter((_, at) => at % 2 === 1)
  const tokens: Token[] = []
  for (let at = 0; at < words.length; ) {
    const joined = (length: number) => words.slice(at, at + length).join('-')
    const isKnown = (name: string) => (roleCalled(name) ?? meaningOf(name)) !== undefined || NEUTRAL.has(name)
    const length = [3, 2].find((each) => at + each <= words.length && isKnown(joined(each))) ?? 1
    const name = joined(length)
    const gap = parts[2 * at] ?? ''
    // In "a penguin family", the family is a number. In "a woman in a red coat", the coat is drawn with the woman.
    const isCompany = COUNTS.has(name) && tokens.at(-1)?.role !== undefined && gap === ' '
    const isWorn = WORN.test(name) && tokens.some(({ role }) => /stand|head|bust/.test(role?.stance ?? ''))
    const called = isCompany || isWorn ? undefined : roleCalled(name)
    tokens.push({
      text: name,
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
  /** The words between the preceding phrase and this one. */
  readonly opening: readonly Token[]
  /** All words of the phrase. */
  readonly words: readonly Token[]
  /** The words up to the head, which comes before a verb: "crosses". */
  readonly tokens: readonly Token[]
  /** `context` for words of place, time or style only. */
  readonly kind: 'actor' | 'unknown' | 'context'
}

function phrasesOf(tokens: readonly Token[]): readonly Phrase[] {
  const phrases: Phrase[] = []
  let [opening, words]: [Token[], Token[]] = [[], []]
  for (const [at, token] of tokens.entries()) {
    const isSeparating = isSeparator(token)
    if (token.isAfterBreak && words.length === 0) opening = []
    ;(isSeparating ? opening : words).push(token)
    const next = tokens[at + 1]
    if (words.length === 0 || !(next === undefined || next.isAfterBreak || isSeparator(next))) continue
    phrases.push(phraseOf(opening, words))
    ;[opening, words] = [[], []]
  }
  return phrases
}

function phraseOf(opening: readonly Token[], words: readonly Token[]): Phrase {
  const hasArticle = opening.some(({ text }) => ARTICLES.has(text)) || words[0]?.text === 'the-camera'
  const head = words.findLastIndex((word, at) => at === 0 || !isTail(word, hasArticle))
  const tokens = words.slice(0, head + 1)
  return { opening, words, tokens, kind: kindOf(tokens) }
}

const isSeparator = ({ role, text }: Token): boolean =>
  role === undefined && (ARTICLES.has(text) || PREPOSITIONS.has(text) || CONNECTIVES.has(text))

/** Whether a word at the end of a phrase is a verb, or describes the picture: "a fox crosses", "a camel caravan". */
function isTail(token: Token, hasArticle: boolean): boolean {
  const { role, text, meaning } = token
  if (role !== undefined || meaning?.place !== undefined) return false
  const isVerb = hasArticle && /..[^s]s$/.test(text) && meaning === undefined
  return isVerb || /.{3}(ing|ed|ly)$/.test(text) || NEUTRAL.has(text)
}

function kindOf(words: readonly Token[]): Phrase['kind'] {
  const head = words.at(-1)
  const known = words.findLastIndex(({ role }) => role !== undefined)
  if (head?.meaning !== undefined || head?.tint !== undefined || head === undefined || NEUTRAL.has(head.text))
    return known < 0 ? 'context' : 'actor'
  // "A dog playing football" has two actors; in "spaceship engine", the first noun only describes the second.
  const isActor = known >= 0 && words.slice(known + 1).some(({ text }) => /(ing|ed|s)$/.test(text))
  return head.role !== undefined || isActor ? 'actor' : 'unknown'
}

/** Returns the actors, people and animals before things and landmarks, and the words that are their colours. */
function actorsOf(phrases: readonly Phrase[]) {
  const actors: Actor[] = []
  const taken = new Set<Token>()
  for (const { tokens, kind, opening, words } of phrases) {
    let number = [...opening, ...words].map(({ text }) => COUNTS.get(text)).find(Boolean)
    for (const [at, { role, isPlural }] of tokens.entries()) {
      // In "a robot cat", the second noun is the actor.
      if (kind !== 'actor' || role === undefined || tokens[at + 1]?.role !== undefined) continue
      const coloured = tokens.slice(Math.max(0, at - 3), at).findLast(({ tint }) => tint !== undefined)
      if (coloured !== undefined) taken.add(coloured)
      if (!actors.some(({ icon }) => icon === role.icon))
        actors.push({ ...role, tint: coloured?.tint, count: Number(number ?? (isPlural ? 3 : 1)) })
      // The number belongs to the first actor of a phrase: "two dogs playing football".
      number = undefined
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
    ({ kind, opening }) => kind === 'actor' || !opening.some(({ text }) => PREPOSITIONS.has(text)),
  )
  const textOf = (phrase?: Phrase) => phrase?.tokens.map(({ text }) => text.replaceAll('-', ' ')).join(' ')
  if (lead === undefined) return hasPlace ? undefined : textOf(content[0])
  const next = phrases[phrases.indexOf(lead) + 1]
  // "A bucket of lemons" shows the lemons.
  if (lead.kind === 'actor' || (next?.opening[0]?.text === 'of' && next.kind === 'actor')) return undefined
  // "Golden reflections, a fox": words without an article describe a picture that has an actor or a place.
  const isAlone = next === undefined || (next.opening[0] ?? next.words[0])?.isAfterBreak
  const isDescription = lead === phrases[0] ? hasActor && isAlone : hasActor || hasPlace
  return isDescription && !lead.opening.some(({ text }) => ARTICLES.has(text)) ? undefined : textOf(lead)
}
