/**
 * Matrix placeholders in the texts of a row: `{animal}`, or `{animal.text}` for a field of a map. A mistyped key in
 * braces is a problem, since the user would pay for a text with the braces in it. Other texts in braces are kept.
 */
import leven from 'leven'
import { nearest, shortened } from '../../protocol/text.js'
import { type Combination, type MatrixKeys, namedBy, OUTPUT_PLACEHOLDERS } from './combinations.js'
import {
  type Field,
  isNull,
  type Node,
  type Position,
  type ReportProblem,
  type Scalar,
  scalar,
} from './nodes.js'
import type { Naming } from './output-paths.js'
import type { RowFields } from './sections.js'

const BRACES = /\{([^{}\n]+)\}/g
/** A key, optionally with a field of its values. */
const EXACT = /^([^.]+)(?:\.(.+))?$/
/** A mistyped placeholder: `{ animal }`, `{Aspect ratio}`, `{animal:03}`; not `{animal: fox}`. */
const MISTYPED = /^\s*([\p{L}_][\p{L}\p{M}\p{N}_ -]*?)\s*([.:][\p{L}\p{M}\p{N}_-]*)?\s*$/u
/** Maximum length of a word compared with the keys: the comparison takes quadratic time. */
const MAX_WORD_LENGTH = 200

interface KeyPlaceholder {
  readonly key: string
  /** Field of the value, if the value is a map. */
  readonly field: string | undefined
  /** Whether the text resembles a key, but is not one. */
  readonly isMistyped: boolean
}

interface CheckedPlaceholders {
  /** Keys that the placeholders use. */
  readonly keys: ReadonlySet<string>
  /**
   * False if a placeholder is invalid. A mistyped placeholder gets the value of the nearest key, so that the row can
   * still be read.
   */
  readonly canBeFilled: boolean
}

export interface Placeholders {
  check(field: string, node: Node, report: ReportProblem): CheckedPlaceholders
  /** Returns the node itself if it has no placeholder. */
  fill(field: string, node: Node, combination: Combination): Node
}

export function createPlaceholders(keys: MatrixKeys, fields: RowFields, naming: Naming): Placeholders {
  const known = new Map<string, KeyPlaceholder | undefined>()
  const isOwn = (field: string, word: string) => field === 'output' && OUTPUT_PLACEHOLDERS.includes(word)

  function placeholderOf(field: string, word: string): KeyPlaceholder | undefined {
    if (isOwn(field, word) && !keys.has(word)) return undefined
    if (!known.has(word)) known.set(word, read(word, keys))
    return known.get(word)
  }

  type Write = (value: Scalar | undefined, isInside: boolean) => string

  /** `isInside`: the placeholder is not at the beginning of the text. */
  const fillText = (field: string, text: string, combination: Combination, write: Write): string =>
    text.replace(BRACES, (whole, word: string, at: number) => {
      const placeholder = placeholderOf(field, word)
      return placeholder === undefined ? whole : write(chosenValue(placeholder, combination), at > 0)
    })

  /** Fill each path component separately, since a value may turn it into a device name. */
  const fillPath = (text: string, combination: Combination): string =>
    text.replace(/[^/]+/g, (component) => {
      const filled = fillText('output', component, combination, (value, isInside) =>
        partOf(textOf(value), isInside, naming),
      )
      return filled === component ? component : naming.unreserved(filled)
    })

  /**
   * Returns the value with its type if the text is a single placeholder, such as `seed: "{seed}"` in the input of
   * another model.
   */
  function wholeValue(field: string, text: string, combination: Combination): Scalar | undefined {
    const [, word] = /^\{([^{}\n]+)\}$/.exec(text) ?? []
    const placeholder = word === undefined ? undefined : placeholderOf(field, word)
    return placeholder === undefined ? undefined : chosenValue(placeholder, combination)
  }

  function fillScalar(field: string, node: Scalar, combination: Combination): Scalar {
    if (typeof node.value !== 'string' || !node.value.includes('{')) return node
    if (field === 'output') return scalar(fillPath(node.value, combination), node.at)
    const value = fields.isList(field) ? undefined : wholeValue(field, node.value, combination)
    if (value !== undefined && typeof value.value !== 'string') return { ...value, at: node.at }
    const filled = fillText(field, node.value, combination, textOf)
    return filled === node.value ? node : scalar(filled, node.at)
  }

  return {
    check(field, node, report) {
      const used = new Set<string>()
      const checked = new Set<string>()
      let canBeFilled = true
      const bare = fields.isJson(field) ? undefined : bareKeyIn(node, keys)
      if (bare !== undefined) {
        report(bare.at, `write "{${bare.key}}" in quotes: without them it is a map in YAML`)
        canBeFilled = false
      }
      for (const text of textsOf(node))
        for (const [whole, word = ''] of String(text.value).matchAll(BRACES)) {
          const placeholder = placeholderOf(field, word)
          if (placeholder === undefined) continue
          used.add(placeholder.key)
          const id = `${text.at.line}:${text.at.column}:${whole}`
          if (checked.has(id)) continue
          checked.add(id)
          const problems = problemsOf(placeholder, whole, text.at, keys.get(placeholder.key) ?? [])
          if (problems.length > 0 && !placeholder.isMistyped) canBeFilled = false
          for (const { at, message } of problems) report(at, message)
        }
      return { keys: used, canBeFilled }
    },

    fill: function fill(field, node, combination): Node {
      if (node.type === 'scalar') return fillScalar(field, node, combination)
      if (node.type === 'list') {
        const items = node.items.map((item) => fill(field, item, combination))
        return items.every((item, at) => item === node.items[at]) ? node : { ...node, items }
      }
      const filledFields = new Map<string, Field>()
      let isChanged = false
      for (const [name, { at, value }] of node.fields) {
        const filled = fill(field, value, combination)
        isChanged ||= filled !== value
        filledFields.set(name, { at, value: filled })
      }
      return isChanged ? { ...node, fields: filledFields } : node
    },
  }
}

function read(word: string, keys: MatrixKeys): KeyPlaceholder | undefined {
  const [, key = '', field] = EXACT.exec(word) ?? []
  if (keys.has(key)) return { key, field, isMistyped: false }
  const [, mistyped = '', rest = ''] = (word.length <= MAX_WORD_LENGTH && MISTYPED.exec(word)) || []
  const near = mistyped === '' ? undefined : nearest(mistyped, [...keys.keys()])
  if (near === undefined || !isNear(mistyped, near)) return undefined
  return { key: near, field: /^\.(.+)/.exec(rest)?.[1], isMistyped: true }
}

/**
 * Whether a word is probably a mistyped key. Stricter than for required names: `{b}` in a prompt does not mean the key
 * `a`.
 */
export const isNear = (word: string, key: string): boolean =>
  leven(word.toLowerCase(), key.toLowerCase()) <= Math.floor(Math.min(word.length, key.length) / 3)

/** Finds a key in braces without quotes: YAML reads `name: {animal}` as a map with an empty field. */
function bareKeyIn(
  node: Node,
  keys: MatrixKeys,
): { readonly at: Position; readonly key: string } | undefined {
  if (node.type === 'list') return node.items.map((item) => bareKeyIn(item, keys)).find(Boolean)
  if (node.type === 'scalar' || node.fields.size !== 1) return undefined
  const [[key, field] = []] = node.fields
  return key !== undefined && field !== undefined && keys.has(key) && isNull(field.value)
    ? { at: node.at, key }
    : undefined
}

function problemsOf(
  placeholder: KeyPlaceholder,
  whole: string,
  at: Position,
  values: readonly Node[],
): readonly { readonly at: Position; readonly message: string }[] {
  const { key, field } = placeholder
  if (placeholder.isMistyped)
    return [{ at, message: unknownPlaceholder(whole, `{${key}${field === undefined ? '' : `.${field}`}}`) }]
  const unnamed = values.filter((value) => valueIn(placeholder, value) === undefined)
  if (unnamed.some(({ type }) => type === 'list'))
    return [{ at, message: `${whole} is a list, which cannot be part of a text` }]
  if (field !== undefined && unnamed.length === values.length)
    return [{ at, message: unknownField(key, field, whole, values) }]
  return unnamed.map((value) => ({ at: value.at, message: missingMessage(placeholder, value) }))
}

function valueIn({ field }: KeyPlaceholder, value: Node): Scalar | undefined {
  if (field === undefined) return namedBy(value)
  const found = value.type === 'fields' ? value.fields.get(field)?.value : undefined
  return found?.type === 'scalar' && !isNull(found) ? found : undefined
}

const chosenValue = (placeholder: KeyPlaceholder, combination: Combination): Scalar | undefined => {
  const value = combination.get(placeholder.key)
  return value === undefined ? undefined : valueIn(placeholder, value)
}

/** Text of a value, without the line end of a YAML block. */
const textOf = (value: Scalar | undefined): string => value?.text.replace(/\r?\n$/, '') ?? ''

/**
 * Makes a value safe in a path. A dot or dash is unsafe only at the beginning of a component: `fox{suffix}.png` may
 * become `fox-night.png`.
 */
function partOf(text: string, isInside: boolean, { safePart }: Naming): string {
  if (text === '') return ''
  return isInside ? safePart(`_${text}`).slice(1) : safePart(text)
}

function* textsOf(node: Node): Generator<Scalar> {
  if (node.type === 'scalar') {
    if (typeof node.value === 'string') yield node
  } else if (node.type === 'list') for (const item of node.items) yield* textsOf(item)
  else for (const { value } of node.fields.values()) yield* textsOf(value)
}

const unknownPlaceholder = (whole: string, suggestion: string): string =>
  `unknown placeholder ${shortened(whole, 60)}. Did you mean ${suggestion}?`

function unknownField(key: string, field: string, whole: string, values: readonly Node[]): string {
  const fields = [
    ...new Set(values.flatMap((value) => (value.type === 'fields' ? [...value.fields.keys()] : []))),
  ]
  const near = nearest(field, fields)
  if (near !== undefined) return unknownPlaceholder(whole, `{${key}.${near}}`)
  return fields.length === 0
    ? `unknown placeholder ${shortened(whole, 60)}: the values of ${key} are not maps`
    : `unknown placeholder ${shortened(whole, 60)}: the values of ${key} have ${fields.join(', ')}`
}

function missingMessage({ key, field }: KeyPlaceholder, value: Node): string {
  if (field !== undefined) return `this value of ${key} has no "${field}", and {${key}.${field}} is used`
  const [other] = value.type === 'fields' ? value.fields.keys() : []
  const instead = other === undefined ? '' : `, or use {${key}.${other}}`
  return `this value of ${key} has no name, and {${key}} is used: add a name${instead}`
}
