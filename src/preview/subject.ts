// Finds what a prompt excludes ("no people", "without snow") and a subject that cannot be drawn ("treasure chest").
// Does not use a grammar: function words, punctuation and word endings split a prompt into phrases, and the last word
// of a phrase is its head.

const words = (list: string): ReadonlySet<string> => new Set(list.split(/\s+/))

const NEGATIONS =
  "no(?!\\.)|not|never|neither|nor|minus|free of|doesn['’]t|don['’]t|isn['’]t|keine?[nrms]?|nicht"
const WITHOUT = 'without|w/o|ohne|sans|sin(?! city)|senza|sem|без'
const NEGATION = new RegExp(
  `(?<![\\p{L}\\p{M}])(?:(${WITHOUT})|${NEGATIONS})\\s+(?:(?:a|an|any|the|in|ein|eine[nrms]?|du|de|des)\\s+)?`,
  'iu',
)
const NEGATED_LENGTH = 5
/** Words that end a negation: "without a hat in the rain". */
const NEGATION_ENDS = words(
  'in on at by near under over above below behind beside through across into from with but while then ' +
    'and im am auf mit dans sur avec en con на в с',
)
const CONTINUES_NEGATION = words('and or nor oder ou o')

/** Returns the prompt with each negation replaced by a comma, and the excluded words. */
export function splitNegations(prompt: string): {
  readonly text: string
  readonly excluded: readonly string[]
} {
  const excluded: string[] = []
  let text = ''
  let rest = prompt
  for (;;) {
    const start = NEGATION.exec(rest)
    if (start === null) return { text: text + rest, excluded }
    text += `${rest.slice(0, start.index)}, `
    rest = rest.slice(start.index + start[0].length)
    // "Not only a fox" excludes nothing.
    const [exception] = /^(?:only|just|far)\b/i.exec(rest) ?? []
    if (exception !== undefined) {
      rest = rest.slice(exception.length)
      continue
    }
    const isWithout = start[1] !== undefined
    const [span] = /^(?:[\p{L}\p{M}\p{N}'’-]+[ \t]*)*/u.exec(rest) ?? ['']
    const found = [...span.matchAll(/[\p{L}\p{M}\p{N}'’-]+/gu)]
    const end = found.findIndex(({ 0: word }, at) => {
      const next = found[at + 1]?.[0].toLowerCase()
      // "Without a hat and a scarf" excludes both things; "no people and a dog" excludes only the people.
      if (CONTINUES_NEGATION.has(word.toLowerCase()))
        return !isWithout && word.toLowerCase() === 'and' && ARTICLES.has(next ?? '')
      return NEGATION_ENDS.has(word.toLowerCase()) || at >= NEGATED_LENGTH
    })
    const length = end < 0 ? span.length : (found[end]?.index ?? 0)
    excluded.push(
      ...(rest
        .slice(0, length)
        .toLowerCase()
        .match(/[\p{L}\p{M}]+/gu) ?? []),
    )
    rest = ` ${rest.slice(length)}`
  }
}

const ARTICLES = words(
  `a an the one some this these my his her their its our your two three four five many several
  ein eine einen einem einer eines der die das den dem un une le la les el los las uno una unos il lo gli um uma`,
)
const OF = words('of de du des au aux di del della dello da do von')
/** Words that begin an adverbial (where, when, with what), which rarely contains the subject. */
const PREPOSITIONS = words(
  `in on at by near next under over above below behind beside between through across into onto from to for with against along
  around inside outside before after during upon within beneath towards toward among like as off up down out
  im am auf mit vor unter über hinter neben aus bei zum zur dans sur sous avec devant près en con sobre bajo junto al
  nel nella sul sulla su sotto com em sob na no nos nas в на под над с у за перед
  على في مع من تحت על בתוך עם תחת`,
)
/** Words that end a phrase without beginning an adverbial. */
const CONNECTIVES = words(
  `and or but while that which who where when is are was were be being has have had it there then than und et y e ist и
  she he they`,
)
/** Verbs and adjectives after a noun that cannot be recognized by their ending. */
const PREDICATES = words(
  `asleep awake alone afloat alive ablaze apart away high low mid wide ran sat stood wore held lay slept flew swam rose fell
  run walk sit stand look play hold wear fly swim sleep carry`,
)
/** Words that describe the picture and cannot be the subject. */
const NEUTRAL = words(
  `photo photograph photography photorealistic picture image shot shots scene view frame still render rendering
  rendered illustration illustrated painting drawing sketch watercolor watercolour oil acrylic ink pencil pixel art
  artwork artstation anime cartoon comic vector isometric flat style styled aesthetic concept design cinematic cinema
  film movie camera lens mm iso bokeh focus depth light lights lighting lit soft hard warm cool natural volumetric rim
  key shadow shadows contrast colour color colours colors coloured colored palette tone tones mood atmosphere
  atmospheric realistic hyperrealistic surreal detailed details highly ultra very high quality resolution hd uhd k fps
  slow fast motion dolly crane tracking pan zoom angle composition background foreground empty text texts words
  letters lettering watermark watermarks title caption blur blurry noise grain footage video clip loop sequence
  timelapse variation version beautiful stunning masterpiece trending set left right center centre middle front side
  top bottom full body half upper something anything nothing everything studio product packshot icon logo minimal
  minimalist isolated pedestal podium backdrop commercial mockup poster wallpaper standing sitting lying walking
  looking seen wearing holding subject character characters sheet series reference same long short new young first
  second last next bild foto von einem dessin imagen cuadro`,
)

/** Whether the excluded words contain a visible thing. False for "no text, no blur". */
export const excludesThings = (excluded: readonly string[]): boolean =>
  excluded.some((word) => !NEUTRAL.has(word))

export type WordKind = 'actor' | 'place' | 'context' | 'other'

/** A word of the prompt, in lower case. */
export interface PromptWord {
  readonly text: string
  /** Whether a comma, a full stop or similar punctuation comes before the word. */
  readonly isAfterBreak: boolean
  kind: WordKind
}

type Opener = 'none' | 'article' | 'preposition'

interface Phrase {
  readonly kind: 'actor' | 'place' | 'context' | 'unknown' | 'neutral'
  readonly text: string
  readonly isAdverbial: boolean
  readonly hasArticle: boolean
  /** Index of the first word of the phrase in the prompt; `end` is the index after the last word. */
  readonly start: number
  readonly end: number
  readonly isBeforeBreak: boolean
  readonly isOf: boolean
}

/**
 * Returns the subject in the words of the prompt, if there is no figure for it. Undefined if the subject is known, or
 * if the prompt has no subject, such as a list of styles and moods.
 */
export function findUnknownSubject(prompt: readonly PromptWord[], hasPlace: boolean): string | undefined {
  // "The character from the reference image" is visible in that image.
  if (prompt.some(({ text }) => text === 'reference')) return undefined
  const phrases = joinOf(prompt, phrasesOf(prompt)).filter(({ kind }) => kind !== 'neutral')
  const [first] = phrases
  const lead = phrases.find(
    ({ kind, isAdverbial }) => kind !== 'context' && (kind === 'actor' || !isAdverbial),
  )
  const firstActor = prompt.findIndex(({ kind }) => kind === 'actor')
  if (firstActor >= 0) {
    // The subject of "an old carpenter with a dog" comes before the actor. "Golden reflections, a fox" has no such
    // subject.
    const isSubject = lead?.kind === 'unknown' && lead.start < firstActor && !lead.isBeforeBreak
    return isSubject && (lead === first || lead.hasArticle) ? lead.text : undefined
  }
  if (lead?.kind === 'unknown' && (!hasPlace || lead === first || lead.hasArticle)) return lead.text
  return hasPlace ? undefined : phrases.find(({ kind }) => kind === 'unknown')?.text
}

/**
 * Whether the words from `at` on are nouns that the known noun before them only describes, as in "spaceship engine".
 */
export function isModifierOf(prompt: readonly PromptWord[], at: number): boolean {
  let end = at
  while (end < prompt.length && !prompt[end]?.isAfterBreak && !isBoundary(prompt[end]?.text)) end++
  const head = prompt[end - 1]
  if (end === at || head === undefined) return false
  const following = prompt.slice(at, end)
  if (
    following.some(({ text, kind }) => kind !== 'other' || NEUTRAL.has(text) || !/^[a-zà-ÿ]{3,}$/.test(text))
  )
    return false
  const [next] = following
  // A verb in "the fox crosses" and "a fox sleeping", but not in "spaceship engines" at the end of a phrase without an
  // article.
  const isVerb =
    isVerbal(next?.text ?? '') || (/[^s]s$/.test(next?.text ?? '') && hasArticleBefore(prompt, at))
  return (
    !isVerb && !PREDICATES.has(next?.text ?? '') && !(/[^s]s$/.test(next?.text ?? '') && end < prompt.length)
  )
}

const isBoundary = (word = ''): boolean =>
  ARTICLES.has(word) || OF.has(word) || PREPOSITIONS.has(word) || CONNECTIVES.has(word)

const isVerbal = (word: string): boolean => /(ing|ed|ly)$/.test(word) && word.length > 4

function hasArticleBefore(prompt: readonly PromptWord[], at: number): boolean {
  return prompt.slice(Math.max(0, at - 5), at).some(({ text }) => ARTICLES.has(text))
}

function phrasesOf(prompt: readonly PromptWord[]): readonly Phrase[] {
  const phrases: Phrase[] = []
  let opener: Opener = 'none'
  let isAdverbial = false
  let isOf = false
  for (let at = 0; at < prompt.length; ) {
    const word = prompt[at] as PromptWord
    if (word.isAfterBreak) [opener, isAdverbial, isOf] = ['none', false, false]
    if (isBoundary(word.text) && word.kind !== 'actor') {
      if (ARTICLES.has(word.text)) opener = 'article'
      else [opener, isAdverbial, isOf] = ['none', PREPOSITIONS.has(word.text), OF.has(word.text)]
      at++
      continue
    }
    let end = at + 1
    const ends = (next: PromptWord | undefined) =>
      next === undefined || next.isAfterBreak || (isBoundary(next.text) && next.kind !== 'actor')
    while (!ends(prompt[end])) end++
    phrases.push({
      ...judge(prompt.slice(at, end), opener === 'article', prompt[end]),
      isAdverbial,
      isOf,
      hasArticle: opener === 'article',
      start: at,
      end,
      isBeforeBreak: prompt[end] === undefined || prompt[end]?.isAfterBreak === true,
    })
    opener = 'none'
    isAdverbial = false
    isOf = false
    at = end
  }
  return phrases
}

function judge(
  phrase: readonly PromptWord[],
  hasArticle: boolean,
  next: PromptWord | undefined,
): Pick<Phrase, 'kind' | 'text'> {
  const isVerbAt = ({ text, kind }: PromptWord, at: number) =>
    kind === 'other' &&
    ((isVerbal(text) && (at > 0 || (!hasArticle && next !== undefined))) ||
      (at > 0 && PREDICATES.has(text)) ||
      // For example "a carpenter carves a horse".
      (at > 0 && hasArticle && /[^s]s$/.test(text) && next !== undefined && !next.isAfterBreak))
  // Remove verbs only at the end, because an adjective may look like a verb ("a broken steaming engine").
  let end = phrase.length
  while (end > 0 && isVerbAt(phrase[end - 1] as PromptWord, end - 1)) end--
  const phraseWords = phrase.slice(0, end)
  // Known words of other scripts are already English here.
  const isLatin = phraseWords.every((word) => word.kind !== 'other' || /^[\p{Script=Latin}]/u.test(word.text))
  const text = phraseWords.flatMap((word) => (isLatin || word.kind === 'other' ? word.text : [])).join(' ')
  if (phraseWords.some(({ kind }) => kind === 'actor')) return { kind: 'actor', text }
  const content = phraseWords.filter((word) => !NEUTRAL.has(word.text))
  const head = content.at(-1)
  if (head === undefined) return { kind: 'neutral', text }
  return { kind: head.kind === 'other' ? 'unknown' : (head.kind as 'place' | 'context'), text }
}

/**
 * Joins phrases with "of". "Portrait of a carpenter" becomes the carpenter, "a bowl of soup" the soup, and "a map of
 * Spain" stays one subject.
 */
function joinOf(prompt: readonly PromptWord[], phrases: readonly Phrase[]): readonly Phrase[] {
  const joined: Phrase[] = []
  for (const phrase of phrases) {
    const before = joined.at(-1)
    if (!phrase.isOf || before === undefined) {
      joined.push(phrase)
      continue
    }
    joined.pop()
    const { isAdverbial, start, hasArticle } = before
    const isMedium = before.kind === 'neutral' || before.kind === 'context'
    if (isMedium) joined.push({ ...phrase, isAdverbial, start, hasArticle: hasArticle || phrase.hasArticle })
    else if (before.kind === 'unknown' && phrase.kind === 'actor') joined.push({ ...before, kind: 'actor' })
    else if (before.kind === 'unknown') {
      const link = prompt.slice(before.end, phrase.start).map((word) => word.text)
      const text = [before.text, ...link, phrase.text].join(' ')
      joined.push({ ...phrase, kind: 'unknown', text, isAdverbial, start, hasArticle })
    } else joined.push(before)
  }
  return joined
}
