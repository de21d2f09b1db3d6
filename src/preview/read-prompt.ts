// Reads a prompt: figures (or a subject without one), place, time, weather, colours and camera. No grammar: punctuation and
// function words split a prompt into phrases, and the last noun of a phrase is its head. A subject that is not known word for
// word becomes a card with its words, and the figure of its nearest noun.
import type { Oklch } from 'culori'
import { EMOJI, type Named } from './emoji.mjs'
import {
  ages,
  articles,
  type Hour,
  joining,
  keysByWord,
  type Meaning,
  meanings,
  neutral,
  prepositions,
  tints,
} from './words.js'

/** A person, an animal or a thing in the prompt: a figure, and how many of it. */
export interface Actor extends Named {
  /** The colour that the prompt gives it. */
  tint: Oklch | undefined
}

export interface Reading extends Omit<Meaning, 'hour' | 'mood'> {
  readonly hour: Hour | undefined
  /** Colours of the picture, in the order of the prompt. Excludes the colours of actors. */
  readonly tints: readonly Oklch[]
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
const THINGS = `(?:(?:a|an|any|the)\\s+)?[\\p{L}-]+`
const LIST = `${THINGS}(?:\\s+(?:or|nor)\\s+${THINGS})*`
/** What the prompt excludes, and owners: "a lighthouse keeper's cottage" shows a lighthouse and a cottage. */
const UNSEEN = new RegExp(
  `\\b(?:without\\s+${LIST}(?:\\s+and\\s+${THINGS})*|(?:no|not|never|nor)\\s+(?!only)${LIST}|[\\p{L}]+['’]s(?![-\\p{L}]))`,
  'giu',
)
/** Function words, and the words after them up to the next one or punctuation. */
const WORD = `(?<![\\p{L}\\p{M}\\p{N}])(?!(?:${joining})\\b)[\\p{L}\\p{M}\\p{N}'’-]+`
const PHRASE = new RegExp(`((?:\\b(?:${joining})\\b\\s*)*)(${WORD}(?:\\s+${WORD})*)`, 'giu')
const ARTICLE = new RegExp(`\\b(${articles})\\b`, 'i')
const PREPOSITION = new RegExp(`\\b(${prepositions})\\b`, 'i')
const WHERE = /\b(in|inside|at|by|near|on|under|behind)\b(?! (her|his|their))/i

const PICTOGRAPH = '\\p{Extended_Pictographic}[\\ufe0f\\u{1f3fb}-\\u{1f3ff}]*'
const EMOJIS = new RegExp(`${PICTOGRAPH}(?:\\u200d(?:${PICTOGRAPH}|[♀♂]\\ufe0f?))*`, 'gu')

/** Replaces each emoji. `change` gets the words of its name, without the skin tone. */
export const replaceEmojis = (text: string, change: (name: string) => string): string =>
  text.replace(EMOJIS, (emoji) => {
    const plain = emoji.replace(/[\ufe0f\u{1f3fb}-\u{1f3ff}]/gu, '')
    const name = EMOJI.characters[plain] ?? EMOJI.characters[plain.slice(0, 2)] ?? 'emoji'
    return change(name.replaceAll('-', ' '))
  })

/** With references, a prompt in which nothing is recognized needs no card. */
export function readPrompt(prompt: string, hasReferences = false): Reading {
  const text = replaceEmojis(prompt.slice(0, MAX_CHARACTERS), (name) => `, ${name}, `).replace(UNSEEN, ', ')
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
    actors,
    ...(lead?.isKnown === false && { card: cardOf(lead, all[all.indexOf(lead) + 1]) }),
    isElsewhere:
      place === undefined && phrases.some(({ isKnown, opening }) => !isKnown && WHERE.test(opening)),
  }
}

const named = new Map(Object.entries(EMOJI.words))
const related = new Map(Object.entries(EMOJI.near))

/** One word, or up to four words that name one figure or one meaning. */
interface Word {
  readonly text: string
  readonly figure: Named | undefined
  readonly meaning: Meaning | undefined
  readonly tint: Oklch | undefined
  /** Whether it only describes: it cannot be the subject. */
  readonly isPlain: boolean
}

function wordCalled(text: string): Word {
  const [meaning, tint] = [meanings.get(text), tints.get(text)]
  const isPlain = (tint ?? meaning) !== undefined || neutral.has(text) || ages.has(text)
  return { text, figure: named.get(text), meaning, tint, isPlain }
}

function wordsOf(title: string): readonly Word[] {
  const parts = title.toLowerCase().split(/[^\p{L}\p{M}\p{N}]+/u)
  const words: Word[] = []
  while (parts.length > 0) {
    const joined = [4, 3, 2, 1].map((length) => wordCalled(parts.slice(0, length).join('-')))
    const word = joined.find(({ figure, isPlain }, at) => at === 3 || figure !== undefined || isPlain)
    if (word !== undefined) words.push(word)
    parts.splice(0, word?.text.split('-').length)
  }
  return words
}

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
  const words = wordsOf(title)
  const verb = ARTICLE.test(opening) ? /..[^s]s$|.{3}(ing|ed|ly)$/ : /.{3}(ing|ed|ly)$/
  const isVerb = ({ text, figure, isPlain }: Word, at: number) =>
    at > 0 && !isPlain && figure === undefined && verb.test(text)
  const nouns = words.filter((word, at) => !word.isPlain && !isVerb(word, at))
  // In "old men playing chess", the men are the subject.
  const [end = words.length] = words.flatMap((word, at) => (isVerb(word, at) ? at : []))
  const [head, before] = nouns.filter((word) => words.indexOf(word) < end).reverse()
  const name = head?.figure?.name
  // "Chocolate cake" is another thing than a cake, and an old cook another person than a cook.
  const isCompound =
    before?.figure && before.figure.name !== name && words[words.indexOf(before) + 1] === head
  const isOther = EMOJI.figures[name ?? '']?.isPerson && words.some(({ text }) => ages.has(text))
  return { opening, title, words, nouns, isKnown: name !== undefined && !isCompound && !isOther }
}

function actorsOf(phrases: readonly Phrase[], all: readonly Word[]): readonly Actor[] {
  const found: Actor[] = []
  for (const { words, nouns, opening } of phrases.filter(({ isKnown }) => isKnown)) {
    const texts = [...opening.toLowerCase().split(/\s+/), ...words.map(({ text }) => text)]
    // The number belongs to the first actor of a phrase: "two dogs playing football".
    let number = texts.map((text) => Number(COUNTS.get(text))).find((count) => count > 0)
    for (const word of nouns) {
      const { figure } = word
      if (figure === undefined || found.some(({ name }) => name === figure.name)) continue
      const tint = words.slice(0, words.indexOf(word)).findLast((each) => each.tint)?.tint
      const wearer = found.at(-1)
      // In "a woman in a red coat", only the colour of the coat is drawn.
      if (wearer && /\bin\b/i.test(opening) && isBackground(figure)) wearer.tint ??= tint
      else found.push({ name: figure.name, tint, count: number ?? figure.count })
      number = undefined
    }
  }
  const isFace = all.some(({ meaning }) => meaning?.view === 'close' || meaning?.place === 'table')
  // A woman, a man or a person is a whole figure that does what the prompt says.
  const verbs = [...all.map(({ text }) => text), ...(isFace ? [] : ['stand'])]
  const doing = (name: string) => verbs.map((verb) => EMOJI.actions[`${name}-${verb}`]).find(Boolean) ?? name
  // People and animals come before things and landmarks.
  return found
    .sort((one, other) => Number(isBackground(one)) - Number(isBackground(other)))
    .slice(0, 2)
    .map((actor) => ({ ...actor, name: doing(actor.name) }))
}

const isBackground = ({ name }: Named): boolean => /thing|landmark/.test(EMOJI.figures[name]?.stance ?? '')

/** Returns the words of a subject, with what it is "of", and the figure of its nearest noun. */
function cardOf(lead: Phrase, next: Phrase | undefined) {
  const parts = next && /^of\b/i.test(next.opening) ? [lead, next] : [lead]
  const names = parts.flatMap(({ nouns, words }) => [
    ...nouns.map(({ text }) => related.get(text)),
    ...words.map(({ figure }) => figure?.name),
  ])
  const title = parts.map((part) => part.opening + part.title).join(' ')
  return { title: title.slice(lead.opening.length), name: names.findLast(Boolean) }
}
