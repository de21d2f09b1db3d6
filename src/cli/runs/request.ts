/** The request of a run: flags and `--input` merged, checked against the schema, and encoded once. */

import { encodeCreate } from '../../client/create.js'
import { usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { isModelName, KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { flagOf } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import { LOCAL_MODELS } from '../../service/local-models.js'
import type { Context } from '../context/context.js'
import type { ParameterValue } from '../flags/model-flags.js'
import { checkStdinUsers, decodeUtf8, readPath, readStdin } from '../process/stdin.js'
import type { Missing } from '../settings/missing.js'
import { missingModel, modelFor } from '../settings/model-settings.js'
import { type PromptOptions, promptReadsStdin, readPrompt } from './prompt.js'
import { referencesReadStdin, resolveReferences } from './references.js'

export interface RequestOptions {
  /** Undefined for any other published model. */
  readonly kind: Kind | undefined
  readonly model?: string | undefined
  readonly input?: string | undefined
  readonly prompt: PromptOptions
  /** Parameters that flags set, by their names in the schema. */
  readonly parameters: Readonly<Record<string, ParameterValue>>
}

export interface RunRequest {
  readonly kind: Kind | undefined
  /** Undefined when no setting names it: see `missing`. */
  readonly model: string | undefined
  readonly missing: readonly Missing[]
  readonly input: ModelInput
}

/** Throws `usage` with all problems. Reads standard input and files; sends nothing. */
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
  const whole = { ...input, ...references }
  // Again, since one `-` can stand for several images.
  if (kind !== undefined && images.includes('-')) checkInput(ctx, kind, whole)
  return {
    kind,
    model,
    missing: model === undefined && kind !== undefined ? [missingModelOf(kind)] : [],
    input: whole,
  }
}

/** The bytes of the create. Throws `usage` when they are too many. */
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

/** `run model` with one of the two published models gets the checks of its schema. */
async function kindOfModel(ctx: Context, model: string | undefined): Promise<Kind | undefined> {
  for (const kind of KINDS) if (model === (await modelFor(ctx, kind))) return kind
  return undefined
}

const missingModelOf = (kind: Kind): Missing =>
  missingModel(
    kind,
    (environment, key) =>
      `Set the model with --model <provider/name>, ${environment} or \`rushes config set ${key} <provider/name>\`. A local service (\`rushes serve\`) has ${LOCAL_MODELS[kind]}.`,
  )

/** Deeper values would exhaust the stack of the functions that read them. */
const MAX_INPUT_DEPTH = 500

/** Throws `usage` for JSON that cannot be sent as it is written, with every problem and its position. */
async function readInput(text: string | undefined, ctx: Context): Promise<ModelInput> {
  if (text === undefined) return {}
  const json = await inputText(text, ctx)
  const { parseJsonText } = await import('../../batch/manifest/json.js')
  const { lostDigitsIn, plainValue } = await import('../../batch/manifest/nodes.js')
  const problems: string[] = []
  const node = parseJsonText(
    // Editors on Windows begin a text with a byte order mark.
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

/** As messages call it: the file, else the flag. */
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
  const problems = inputProblems(kind, input)
  if (problems.length > 0) {
    const lines = problems.map(({ parameter, message }) => sayProblem(parameter, message))
    const isPromptAlone = problems.length === 1 && isMissingPrompt(problems[0])
    throw usageError(
      lines.join(' '),
      isPromptAlone ? exampleOf(kind) : `See all parameters with \`rushes models ${kind}\`.`,
    )
  }
  for (const { name, nearest } of unknownFields(kind, input))
    out.warn(
      `The ${kind} model has no parameter "${name}"${nearest === undefined ? '.' : `. Did you mean "${nearest}"?`} It is sent unchanged.`,
    )
}

const EXAMPLES: Readonly<Record<Kind, string>> = { image: 'a red fox', video: 'a paper boat in a puddle' }

const exampleOf = (kind: Kind): string => `Example: \`rushes run ${kind} "${EXAMPLES[kind]}"\``

const isMissingPrompt = (problem: { readonly parameter: string; readonly message: string } | undefined) =>
  problem?.parameter === 'prompt' && problem.message === 'is missing'

const sayProblem = (parameter: string, message: string): string => {
  if (isMissingPrompt({ parameter, message })) return 'Missing prompt.'
  const [name = '', entry] = parameter.split('/')
  return `${flagOf(name)}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`} ${message}.`
}
