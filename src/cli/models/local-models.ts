/**
 * The models of the local service of `--local`: that of `--engine`, then those of `local.models`, else its previews. The
 * model of `--engine` is a document without a file, named after its server; its runs carry it.
 */
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { type Fetch, HttpFailure } from '../../host/http.js'
import { readText } from '../../host/response-body.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { PROVIDERS } from '../../service/engines/hosted/providers.js'
import { type EngineWord, readEngineWord } from '../../service/models/engine-word.js'
import type { AddedModel, ModelSet } from '../../service/models/model-set.js'
import { PREVIEW_DOCUMENTS, PREVIEW_MODELS } from '../../service/models/served-model.js'
import type { Env } from '../process/io.js'

export interface LocalModelsOptions {
  /** Value of the setting. A relative path, which was written by hand, is relative to the config folder. */
  readonly path: string | undefined
  readonly configFolder: string
  readonly env: Env
  /** The engine of `--engine`. */
  readonly engine?: AddedModel | undefined
}

/** Throws `usage` with all problems of the documents. Does not need the files and keys of their engines. */
export async function localDocuments(options: LocalModelsOptions): Promise<readonly ModelDocument[]> {
  const isPreview = options.path === undefined && options.engine === undefined
  const { models } = isPreview ? { models: PREVIEW_MODELS } : await openLocalModels(options, false)
  return models.map(({ document }) => document)
}

/** `readsEngines`: whether runs will be rendered. Problems of `--engine` are reported in both cases. */
export async function openLocalModels(
  { path, configFolder, env, engine }: LocalModelsOptions,
  readsEngines: boolean,
): Promise<ModelSet> {
  const { openModelSet } = await import('../../service/models/model-set.js')
  return openModelSet({
    path: path === undefined ? undefined : resolve(configFolder, path),
    added: engine,
    env,
    readsEngines,
    isCharged: false,
  })
}

export interface OpenedEngine extends AddedModel {
  /** Why the model cannot render now. Reported before a run exists. */
  readonly refused?: RushesError | undefined
}

interface OpenEngineOptions {
  /** Value of `--engine`, with its kind if it is known. */
  readonly flag: string
  readonly fetch: Fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Asks the server for its model. Throws `usage` for an invalid word, and `no_api_key` if the server wants a key. */
export async function openLocalEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const { flag } = options
  const [, prefix, typed = ''] = /^(?:(image|video)=)?(.*)$/s.exec(flag) ?? []
  const read = readEngineWord(typed, '--engine ')
  const kind = KINDS.find((each) => each === prefix) ?? (read.type === 'videos' ? 'video' : 'image')
  checkCommand(read)
  const word: EngineWord = read.workflow === undefined ? read : { ...read, workflow: resolve(read.workflow) }
  const { model, refused } = await askServer(word, options)
  const hasName = word.type !== 'sdapi' && word.type !== 'sdcpp'
  const named = word.model ?? model
  return {
    document: documentOf(nameOf(word, named), kind, word.type),
    engine: { ...word, ...(hasName && word.url && named && { model: named }) },
    // Without the rest of the flag, which may be long.
    flag: `--engine ${word.type === 'command' ? '' : `${word.type}:`}…`,
    refused,
  }
}

/** A path that does not exist would only show after the run was created. */
function checkCommand({ type, command = '' }: EngineWord): void {
  if (type !== 'command') return
  const [path = ''] = command.trim().split(/\s/)
  if (path === '') throw usageError('--engine is empty.', 'Example: --engine images:http://127.0.0.1:1234/v1')
  if (/^\.{0,2}\//.test(path) && !existsSync(path))
    throw usageError(`--engine: ${path}: no such file.`, 'Example: --engine ./my-model.sh')
}

/** For example `127.0.0.1/sd-cpp-local`. */
function nameOf({ type, url, workflow, command = '', model = '' }: EngineWord, named = ''): string {
  if (url === undefined && type !== 'command') return model.replace(/:.*$/, '')
  const program = command.trim().split(/\s/)[0] ?? ''
  // The title of a checkpoint ends with a hash: `flux1-dev.safetensors [a1b2c3]`.
  const listed = named.replace(/ \[\w+\]$/, '').replaceAll(/[^\w.:@/-]+/g, '-')
  const file = basename(workflow ?? program).replace(/\.\w+$/, '')
  return `${url === undefined ? type : new URL(url).hostname}/${listed.slice(0, 100) || file || type}`
}

/** A provider publishes the parameters of its models, so here they have a prompt alone. */
function documentOf(name: string, kind: Kind, type: string): ModelDocument {
  const { input } = PREVIEW_DOCUMENTS[kind]
  const { prompt } = input.properties
  const isHosted = Object.hasOwn(PROVIDERS, type) && prompt !== undefined
  return { name, kind, input: isHosted ? { ...input, properties: { prompt } } : input, default: true }
}

/** What a server says of itself, without a run. */
interface ServerAnswer {
  /** Its only model. */
  readonly model?: string | undefined
  /** Nothing listens at its address. */
  readonly refused?: RushesError
}

/** The path below the engine's URL that each type of server answers. */
const PATHS: Readonly<Record<string, string>> = {
  images: 'models',
  videos: 'models',
  sdapi: 'sdapi/v1/sd-models',
  sdcpp: 'sdcpp/v1/capabilities',
  comfyui: 'system_stats',
  cog: 'openapi.json',
}

const TIMEOUT_MS = 5_000
const MAX_BYTES = 1_048_576

/** A server that sends no answer in time, or another one, may be busy. */
async function askServer(
  { type, url = '' }: EngineWord,
  { fetch, clock, signal }: OpenEngineOptions,
): Promise<ServerAnswer> {
  const path = PATHS[type]
  if (path === undefined || !URL.canParse(url)) return {}
  const headers = { accept: 'application/json' }
  const request = { method: 'GET', url: new URL(`${url.replace(/\/+$/, '')}/${path}`), headers } as const
  const limit = { timeoutMs: TIMEOUT_MS, reason: () => new Error('no response'), clock, signal }
  try {
    return await withTimeout(async (limited) => {
      const response = await fetch({ ...request, signal: limited })
      const body = parseJson(await readText(response, MAX_BYTES))
      if (response.status === 401) throw unauthorizedError(url)
      if (response.status !== 200 || !body.ok) return {}
      return { model: type === 'sdcpp' ? modelOfSdcpp(body.value) : onlyModel(body.value) }
    }, limit)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof RushesError) throw error
    return error instanceof HttpFailure && !error.sent ? { refused: refusedError(url) } : {}
  }
}

function onlyModel(answer: unknown): string | undefined {
  const list = isObject(answer) ? answer.data : answer
  const [only, ...others] = Array.isArray(list) ? list.filter(isObject) : []
  const name = others.length === 0 ? (only?.id ?? only?.title) : undefined
  return typeof name === 'string' ? name : undefined
}

function modelOfSdcpp(answer: unknown): string | undefined {
  const { model } = isObject(answer) ? answer : {}
  return isObject(model) && typeof model.stem === 'string' ? model.stem : undefined
}

const refusedError = (url: string) =>
  new RushesError('network', `Nothing listens at ${new URL(url).origin}. No run was created.`, {
    hint: 'Start the model server, or change its address.',
  })

/** Thrown before a run exists. */
const unauthorizedError = (url: string) =>
  new RushesError('no_api_key', `The server at ${new URL(url).origin} refused access. No run was created.`, {
    hint: 'Write a model file that names the variable of its key as key_env (docs/engines.md).',
  })
