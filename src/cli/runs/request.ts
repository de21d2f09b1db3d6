/**
 * Builds the request of a run: merges prompt, reference images, flags and `--input`, checks them against the schema,
 * and encodes them once. A prompt stays text: it is never read as JSON or as a path.
 */

import { statSync } from 'node:fs'
import { encodeCreate, tooLarge } from '../../client/create.js'
import { usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl, imageTypeOf } from '../../protocol/media.js'
import { isModelName, KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { builtInSchema, flagOf } from '../../protocol/parameters.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import { LOCAL_MODELS } from '../../service/names.js'
import type { Context } from '../context/context.js'
import type { ParameterValue } from '../flags/model-flags.js'
import { checkStdinUsers, decodeUtf8, linesOf, readPath, readStdin, type Stdin } from '../process/io.js'
import { type Missing, missingModel, modelFor } from '../settings/required-settings.js'
import { isRunOutput } from './run-outputs.js'

export interface RequestOptions {
  /** Kind of the model. Undefined for `rushes run model`. */
  readonly kind: Kind | undefined
  readonly model?: string | undefined
  readonly input?: string | undefined
  readonly prompt: PromptOptions
  /** Parameters set by flags, by their names in the schema. */
  readonly parameters: Readonly<Record<string, ParameterValue>>
}

export interface RunRequest {
  readonly kind: Kind | undefined
  /** Undefined if no model is set, which `missing` contains. */
  readonly model: string | undefined
  readonly missing: readonly Missing[]
  readonly input: ModelInput
}

/** Builds the request. Reads standard input and files, and sends nothing. Rejects with `usage` and all problems. */
export async function buildRequest(ctx: Context, options: RequestOptions): Promise<RunRequest> {
  const { stdin, interrupts } = ctx
  const { image_urls: sources, prompt: _, ...flags } = options.parameters
  const images = Array.isArray(sources) ? sources : []
  checkStdinUsers([
    promptReadsStdin(options.prompt),
    ...referencesReadStdin(images),
    options.input === '-' ? '--input' : undefined,
  ])
  const model = await findModel(ctx, options)
  const kind = options.kind ?? (await kindOfModel(ctx, model))
  const given = await readInput(options.input, ctx)
  const prompt = await readPrompt(options.prompt, stdin, interrupts.first)
  const input = { ...given, ...(prompt !== undefined && { prompt }), ...flags }
  if (kind !== undefined)
    checkInput(ctx, kind, { ...input, ...(images.length > 0 && { image_urls: images }) })
  const references =
    images.length === 0 ? {} : { image_urls: await resolveReferences(images, stdin, interrupts.first) }
  const completeInput = { ...input, ...references }
  // Check again, because one `-` can stand for several images.
  if (kind !== undefined && images.includes('-')) checkInput(ctx, kind, completeInput)
  return {
    kind,
    model,
    missing: model === undefined && kind !== undefined ? [missingModelOf(kind)] : [],
    input: completeInput,
  }
}

/** Encodes the body of the create. Throws `usage` if it exceeds the limit. */
export const encodeRequest = (model: string, input: ModelInput): Uint8Array => encodeCreate({ model, input })

async function findModel(ctx: Context, { kind, model }: RequestOptions): Promise<string | undefined> {
  if (model !== undefined && !isModelName(model))
    throw usageError(
      `"${model}" is not a valid model identifier.`,
      'Use the form <provider>/<name>, as published by the service.',
    )
  if (model !== undefined || kind === undefined) return model
  return modelFor(ctx, kind)
}

/** Returns the kind of the model, if any. With a published model, `run model` checks its schema too. */
async function kindOfModel(ctx: Context, model: string | undefined): Promise<Kind | undefined> {
  for (const kind of KINDS) if (model === (await modelFor(ctx, kind))) return kind
  return undefined
}

const missingModelOf = (kind: Kind): Missing =>
  missingModel(
    kind,
    (environment, key) =>
      `Set the model with --model <provider/name>, ${environment} or \`rushes config set ${key} ` +
      `<provider/name>\`. A local service (\`rushes serve\`) has ${LOCAL_MODELS[kind]}.`,
  )

/** Maximum nesting of the input. Deeper values would overflow the stack of recursive functions. */
const MAX_INPUT_DEPTH = 500

/**
 * Parses `--input`. Rejects with `usage` for JSON that cannot be sent exactly as written, and lists each problem with
 * its position.
 */
async function readInput(text: string | undefined, ctx: Context): Promise<ModelInput> {
  if (text === undefined) return {}
  const json = await inputText(text, ctx)
  const { parseJsonText } = await import('../../batch/manifest/json.js')
  const { lostDigitsIn, plainValue } = await import('../../batch/manifest/nodes.js')
  const problems: string[] = []
  const node = parseJsonText(
    // Some Windows editors add a byte order mark.
    json.replace(/^\ufeff/, ''),
    ({ line, column }, message) => problems.push(`${message} (line ${line}, column ${column})`),
    MAX_INPUT_DEPTH,
  )
  for (const { line, column, message } of node === undefined ? [] : lostDigitsIn(node))
    problems.push(`${message} (line ${line}, column ${column})`)
  if (problems.length > 0) throw usageError(`${nameOfInput(text)}: ${problems.join('; ')}.`, INPUT_HINT)
  const value = node === undefined ? undefined : plainValue(node)
  if (!isObject(value)) throw usageError('--input is not a JSON object.', INPUT_HINT)
  return value
}

const INPUT_HINT = `Use --input '{"prompt": "a red fox"}', --input @file.json or --input -.`

/** Name of the input in messages: the file or the flag. */
const nameOfInput = (text: string): string => (text.startsWith('@') ? text.slice(1) : '--input')

async function inputText(text: string, { stdin, interrupts }: Context): Promise<string> {
  if (text !== '-' && !text.startsWith('@')) return text
  const bytes =
    text === '-'
      ? await readStdin(stdin, '--input', interrupts.first)
      : await readInputFile(text.slice(1), interrupts.first)
  const json = decodeUtf8(bytes)
  if (json === undefined) throw usageError(`${nameOfInput(text)} is not UTF-8 text.`, INPUT_HINT)
  return json
}

async function readInputFile(path: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readPath(path, signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`${describeError(error, path)}.`, 'Give the path of a JSON file: --input @file.json.')
  }
}

function checkInput({ out }: Context, kind: Kind, input: ModelInput): void {
  if (typeof input.prompt === 'string' && input.prompt.trim() === '')
    throw usageError('The prompt is empty.', exampleOf(kind))
  const problems = inputProblems(builtInSchema(kind), input)
  if (problems.length > 0) {
    const lines = problems.map(({ parameter, message }) => problemError(parameter, message))
    const isPromptAlone = problems.length === 1 && isMissingPrompt(problems[0])
    throw usageError(
      lines.join(' '),
      isPromptAlone ? exampleOf(kind) : `See all parameters with \`rushes models ${kind}\`.`,
    )
  }
  for (const { name, nearest } of unknownFields(builtInSchema(kind), input))
    out.warn(
      `The ${kind} model has no parameter ` +
        `"${name}"${nearest === undefined ? '.' : `. Did you mean "${nearest}"?`} It is sent unchanged.`,
    )
}

const EXAMPLES: Readonly<Record<Kind, string>> = { image: 'a red fox', video: 'a paper boat in a puddle' }

const exampleOf = (kind: Kind): string => `Example: \`rushes run ${kind} "${EXAMPLES[kind]}"\``

const isMissingPrompt = (problem: { readonly parameter: string; readonly message: string } | undefined) =>
  problem?.parameter === 'prompt' && problem.message === 'is missing'

const problemError = (parameter: string, message: string): string => {
  if (isMissingPrompt({ parameter, message })) return 'Missing prompt.'
  const [name = '', entry] = parameter.split('/')
  return `${flagOf(name)}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`} ${message}.`
}

interface PromptOptions {
  readonly words: readonly string[]
  readonly prompt?: string | undefined
  readonly promptFile?: string | undefined
}

interface Source {
  readonly name: string
  readonly kind: 'text' | 'file'
  readonly value: string
}

const sourcesOf = ({ words, prompt, promptFile }: PromptOptions): readonly Source[] => [
  ...(words.length > 0 ? [{ name: 'the arguments', kind: 'text', value: words.join(' ') } as const] : []),
  ...(prompt !== undefined ? [{ name: '--prompt', kind: 'text', value: prompt } as const] : []),
  ...(promptFile !== undefined ? [{ name: '--prompt-file', kind: 'file', value: promptFile } as const] : []),
]

/** Returns the source of the prompt, if any. Throws `usage` for more than one. */
function sourceOf(options: PromptOptions): Source | undefined {
  const sources = sourcesOf(options)
  if (sources.length > 1) {
    const names = sources.map(({ name }) => name).join(' and ')
    throw usageError(`More than one prompt was given: ${names}.`, 'Use only one of them.')
  }
  return sources[0]
}

/** Name of the prompt for `checkStdinUsers`. Undefined if it is not read from standard input. */
const promptReadsStdin = (options: PromptOptions): string | undefined =>
  sourceOf(options)?.value === '-' ? 'The prompt' : undefined

const withoutFinalLineEnd = (text: string): string => text.replace(/\r?\n$/, '')

/**
 * Returns the prompt. Undefined if no source is given. Rejects with `usage` if the prompt is blank or cannot be read.
 */
export async function readPrompt(
  options: PromptOptions,
  stdin: Stdin,
  signal: AbortSignal,
): Promise<string | undefined> {
  const source = sourceOf(options)
  if (source === undefined) return undefined
  const text = await readSource(source, stdin, signal)
  if (text.trim() === '')
    throw usageError('The prompt is empty.', 'Example: `rushes run image "a red fox in fresh snow"`')
  return text
}

async function readSource({ kind, value }: Source, stdin: Stdin, signal: AbortSignal): Promise<string> {
  if (value !== '-' && kind === 'text') return value
  const bytes = value === '-' ? await readStdin(stdin, 'the prompt', signal) : await readFile(value, signal)
  const text = decodeUtf8(bytes)
  if (text === undefined)
    throw usageError(`${value === '-' ? 'standard input' : value}: the prompt is not UTF-8 text.`)
  return withoutFinalLineEnd(text)
}

async function readFile(path: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readPath(path, signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`${describeError(error, path)}.`, 'Give the path of a text file: --prompt-file <path>.')
  }
}

const referencesReadStdin = (sources: readonly string[]): readonly string[] =>
  sources.filter((source) => source === '-').map(() => '-i')

/** Returns an entry of `image_urls` for each source. `-` may give several entries. Rejects with `usage`. */
async function resolveReferences(
  sources: readonly string[],
  stdin: Stdin,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const resolved: string[] = []
  for (const source of sources) {
    if (source === '-') resolved.push(...(await readReferences(stdin, signal)))
    else resolved.push(await resolveReference(source, signal))
  }
  return resolved
}

/** Reads standard input, which contains one image, or one source per line. */
async function readReferences(stdin: Stdin, signal: AbortSignal): Promise<readonly string[]> {
  const bytes = await readStdin(stdin, 'the reference images', signal)
  const type = imageTypeOf(bytes)
  if (type !== undefined) return [dataUrl(bytes, type)]
  if (bytes.includes(0)) throw notAnImage('Standard input')
  const resolved: string[] = []
  for (const line of linesOf(bytes.toString('utf8'))) resolved.push(await resolveReference(line, signal))
  return resolved
}

async function resolveReference(source: string, signal: AbortSignal): Promise<string> {
  if (/^https?:/i.test(source)) {
    if (isHttpUrl(source)) return source
    throw usageError(`"${source}" is not a valid image URL.`)
  }
  if (/^data:/i.test(source)) return source
  // Resolved later, when the service is known: see `run-outputs.ts`.
  if (isRunOutput(source)) return source
  const bytes = await readImage(source, signal)
  const type = imageTypeOf(bytes)
  if (type === undefined) throw notAnImage(source)
  return dataUrl(bytes, type)
}

async function readImage(path: string, signal: AbortSignal): Promise<Buffer> {
  try {
    const { size } = statSync(path)
    if (size > MAX_BODY_BYTES) throw tooLarge(`${path} has ${size} bytes`)
    return await readPath(path, signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(
      `${describeError(error, path)}.`,
      'Give an image as a path, an http(s) URL, a data: URL, run:<id> or -.',
    )
  }
}

const notAnImage = (what: string) =>
  usageError(
    `${what} is not a PNG, JPEG, WebP, GIF or AVIF image.`,
    'The content of the file decides, not its name.',
  )
