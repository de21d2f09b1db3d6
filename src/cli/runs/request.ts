/**
 * Builds the request of a run: merges prompt, media, flags and `--input`, checks them against the schema,
 * and encodes them once. A prompt stays text: it is never read as JSON or as a path.
 */
import { encodeCreate } from '../../client/create.js'
import { usageError } from '../../errors.js'
import { IMAGE_URLS, mediaParameters, mediaSources } from '../../protocol/media-parameters.js'
import {
  builtInSchema,
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelInput,
} from '../../protocol/models.js'
import { inputProblems, MISSING, unknownFields } from '../../protocol/validate.js'
import { LOCAL_MODELS } from '../../service/rules/names.js'
import type { Context } from '../context/context.js'
import { flagsOf, type ParameterValue } from '../flags/model-flags.js'
import { readJsonArgument } from '../flags/values.js'
import { builtInDocument } from '../models/known-models.js'
import { checkStdinUsers, decodeUtf8, readPath, readStdin, type Stdin } from '../process/io.js'
import { type Missing, missingModel, modelFor, wrongKind } from '../settings/settings.js'
import type { FileOf } from './media-sources.js'

export interface RequestOptions {
  /** Kind of the model. Undefined for `rushes run model`. */
  readonly kind: Kind | undefined
  readonly model?: string | undefined
  readonly input?: string | undefined
  readonly prompt: PromptOptions
  /** Parameters set by flags, by their names in the schema. */
  readonly parameters: Readonly<Record<string, ParameterValue>>
  /** Whether errors name parameters as a tool of `rushes mcp` does, and not as flags. */
  readonly isTool?: boolean
  /** Default: any file may be read. */
  readonly fileOf?: FileOf
}

export interface RunRequest {
  readonly kind: Kind | undefined
  /** Undefined if no model is set, which `missing` contains. */
  readonly model: string | undefined
  readonly missing: readonly Missing[]
  readonly input: ModelInput
  /** Names of its media parameters. */
  readonly media: readonly string[]
  /** The body of the create. Undefined like `model`. */
  readonly body: Uint8Array | undefined
}

/** Builds the request. Reads standard input and files, and creates no run. Rejects with `usage` and all problems. */
export async function buildRequest(ctx: Context, options: RequestOptions): Promise<RunRequest> {
  const { stdin, interrupts } = ctx
  const { prompt: _, ...flags } = options.parameters
  const model = await findModel(ctx, options)
  const models = await ctx.models()
  const before = await models.checked(() => describe(ctx, options, model))
  checkStdinUsers([
    stdinUserOfPrompt(options.prompt),
    ...before.readers.map(({ parameter }) =>
      parameter === IMAGE_URLS ? '-i' : before.flagNames.get(parameter),
    ),
    options.input === '-' ? '--input' : undefined,
  ])
  const given = await readInput(options.input, ctx)
  const prompt = await readPrompt(options.prompt, stdin, interrupts.first)
  const input: ModelInput = { ...given, ...(prompt !== undefined && { prompt }), ...flags }
  if (typeof input.prompt === 'string' && input.prompt.trim() === '')
    throw usageError('The prompt is empty.', exampleOf(options.kind))
  const { document, media, flagNames, names, readers } = await models.checked(async () => {
    const described = await describe(ctx, options, model)
    if (described.document !== undefined) checkInput(ctx, described.document, input, described.flagNames)
    return described
  })
  let completeInput = input
  if (mediaSources(input, names).length > 0) {
    // Loaded here because most runs have no media.
    const { readMediaSources, withStdin } = await import('./media-sources.js')
    const [reader] = readers
    if (reader !== undefined) completeInput = await withStdin(input, reader, media, ctx)
    // Check again, because one `-` can stand for several images.
    if (document !== undefined && reader !== undefined) checkInput(ctx, document, completeInput, flagNames)
    // Without a document, only the sources of flags are certainly media.
    const read = document === undefined ? names.filter((name) => Object.hasOwn(flags, name)) : names
    const { fileOf } = options
    completeInput = await readMediaSources(completeInput, read, { media, signal: interrupts.first, fileOf })
  }
  return {
    kind: document?.kind ?? options.kind,
    model,
    missing: model === undefined && options.kind !== undefined ? [missingModelOf(options.kind)] : [],
    input: completeInput,
    media: names,
    body: model === undefined ? undefined : encodeCreate({ model, input: completeInput }),
  }
}

/** What the document of the model says of the flags. It may have come from the service meanwhile. */
async function describe(ctx: Context, options: RequestOptions, model: string | undefined) {
  const document = await findDocument(ctx, options, model)
  if (document !== undefined) checkTakesPrompt(document, options.prompt)
  const media = mediaParameters(document?.input)
  const names = [...media.keys()]
  const readers = mediaSources(options.parameters, names).filter(({ value }) => value === '-')
  return { document, media, names, readers, flagNames: flagNamesOf(document, options) }
}

async function findModel(ctx: Context, { kind, model }: RequestOptions): Promise<string | undefined> {
  if (model !== undefined && !isModelName(model))
    throw usageError(
      `"${model}" is not a valid model identifier.`,
      'Use the form <provider>/<name>, as published by the service.',
    )
  if (model !== undefined || kind === undefined) return model
  return modelFor(ctx, kind)
}

/**
 * Returns the document of the model. A model without one has the built-in schema of its kind, if the kind is known. The
 * input of a model with an invalid document is not checked.
 * Throws `usage` for a model of another kind.
 */
async function findDocument(
  ctx: Context,
  { kind, model: typed }: RequestOptions,
  model: string | undefined,
): Promise<ModelDocument | undefined> {
  const models = await ctx.models()
  const found = model === undefined ? undefined : models.find(model)
  if (found !== undefined && kind !== undefined && found.kind !== kind)
    throw wrongKind(found, kind, typed !== undefined)
  if (found !== undefined || (model !== undefined && models.isInvalid(model))) return found
  const known = kind ?? (await kindOfModel(ctx, model))
  return known && builtInDocument(known, model)
}

/** Returns the kind of a model that is set as the model of a kind. */
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

const INPUT_HINT = `Use --input '{"prompt": "a red fox"}', --input @file.json or --input -.`

/** Rejects with `usage` for JSON that cannot be sent exactly as written. */
async function readInput(text: string | undefined, ctx: Context): Promise<ModelInput> {
  if (text === undefined) return {}
  return readJsonArgument(ctx, text, { name: '--input', hint: INPUT_HINT })
}

function checkTakesPrompt({ name, input: { properties } }: ModelDocument, options: PromptOptions): void {
  const source = Object.hasOwn(properties, 'prompt') ? undefined : sourceOf(options)
  if (source !== undefined)
    throw usageError(
      `${name} takes no prompt, but ${source.name} ${source.name === WORDS ? 'contain' : 'gives'} one.`,
      `See its parameters with \`rushes models ${name}\`.`,
    )
}

/** Whether the model has only the built-in schema of its kind. */
const isBuiltIn = ({ kind, input }: ModelDocument): boolean => input === builtInSchema(kind)

/** Returns how the user names each parameter that has a name. `run model` has no flags for parameters. */
function flagNamesOf(
  document: ModelDocument | undefined,
  { kind, isTool }: RequestOptions,
): ReadonlyMap<string, string> {
  if (document === undefined) return new Map()
  const { input } = document
  if (isTool) return new Map(Object.keys(input.properties).map((name) => [name, name]))
  return kind === undefined ? new Map() : flagsOf(input)
}

/** `flags`: the flag of each parameter that has one. */
function checkInput(
  { out, globals }: Context,
  document: ModelDocument,
  input: ModelInput,
  flags: ReadonlyMap<string, string>,
): void {
  const { name: model, kind, input: schema } = document
  const problems = inputProblems(schema, input)
  if (problems.length > 0) {
    const lines = problems.map(({ parameter, message }) => problemError(flags, parameter, message))
    const isPromptAlone = problems.length === 1 && isMissingPrompt(problems[0])
    throw usageError(
      lines.join(' '),
      isPromptAlone
        ? exampleOf(kind)
        : `See all parameters with \`rushes ${isBuiltIn(document) ? `run ${kind} --help` : `models ${model}`}` +
            `${globals.local ? ' --local' : ''}\`.`,
    )
  }
  for (const { name, nearest } of unknownFields(schema, input))
    out.warn(
      `${isBuiltIn(document) ? `The ${kind} model` : model} has no parameter ` +
        `"${name}"${nearest === undefined ? '.' : `. Did you mean "${nearest}"?`} It is sent to the service, which may ignore it.`,
    )
}

const EXAMPLES: Readonly<Record<Kind, string>> = { image: 'a red fox', video: 'a paper boat in a puddle' }

const exampleOf = (kind: Kind = 'image'): string => `Example: \`rushes run ${kind} "${EXAMPLES[kind]}"\``

const isMissingPrompt = (problem: { readonly parameter: string; readonly message: string } | undefined) =>
  problem?.parameter === 'prompt' && problem.message === MISSING

const problemError = (flags: ReadonlyMap<string, string>, parameter: string, message: string): string => {
  if (isMissingPrompt({ parameter, message })) return 'Missing prompt.'
  const [name = '', entry] = parameter.split('/')
  return `${flags.get(name) ?? `input.${name}`}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`} ${message}.`
}

interface PromptOptions {
  readonly words: readonly string[]
  readonly prompt?: string | undefined
  readonly promptFile?: string | undefined
}

interface Source {
  readonly name: string
  /** Text, or the path of a file. `-`: standard input. */
  readonly value: string
  readonly isFile?: boolean
}

const WORDS = 'the arguments'

/** Returns the source of the prompt, if any. Throws `usage` for more than one. */
function sourceOf({ words, prompt, promptFile }: PromptOptions): Source | undefined {
  const sources: Source[] = []
  if (words.length > 0) sources.push({ name: WORDS, value: words.join(' ') })
  if (prompt !== undefined) sources.push({ name: '--prompt', value: prompt })
  if (promptFile !== undefined) sources.push({ name: '--prompt-file', value: promptFile, isFile: true })
  if (sources.length > 1) {
    const names = sources.map(({ name }) => name).join(' and ')
    throw usageError(`More than one prompt was given: ${names}.`, 'Use only one of them.')
  }
  return sources[0]
}

/** Name of the prompt for `checkStdinUsers`. Undefined if it is not read from standard input. */
const stdinUserOfPrompt = (options: PromptOptions): string | undefined =>
  sourceOf(options)?.value === '-' ? 'The prompt' : undefined

/** Returns the prompt. Undefined if no source is given. Rejects with `usage` if it cannot be read. */
async function readPrompt(
  options: PromptOptions,
  stdin: Stdin,
  signal: AbortSignal,
): Promise<string | undefined> {
  const source = sourceOf(options)
  if (source === undefined) return undefined
  const { value, isFile } = source
  if (value !== '-' && !isFile) return value
  const bytes = await (value === '-'
    ? readStdin(stdin, 'the prompt', signal)
    : readPath(value, { signal, hint: 'Give the path of a text file: --prompt-file <path>.' }))
  const text = decodeUtf8(bytes)
  if (text === undefined)
    throw usageError(`${value === '-' ? 'standard input' : value}: the prompt is not UTF-8 text.`)
  return text.replace(/\r?\n$/, '')
}
