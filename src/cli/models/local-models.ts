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
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
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

/** Reads the value of `--engine`, with its kind if it is known. Throws `usage`. */
export function readLineEngine(flag: string): AddedModel {
  const [, prefix, typed = ''] = /^(?:(image|video)=)?(.*)$/s.exec(flag) ?? []
  const word = readEngineWord(typed, '--engine ')
  const { type, workflow } = word
  const kind = KINDS.find((each) => each === prefix) ?? (type === 'videos' ? 'video' : 'image')
  checkCommand(word)
  return {
    document: documentOf(nameOf(word), kind, type),
    engine: workflow === undefined ? word : { ...word, workflow: resolve(workflow) },
    // Without the rest of the flag, which may be long.
    flag: `--engine ${type === 'command' ? '' : `${type}:`}…`,
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

/** The name of its provider, or for example `127.0.0.1/flux.1-dev`. */
function nameOf({ type, url, workflow, command, model = '' }: EngineWord): string {
  if (url === undefined && command === undefined) return model.replace(/:.*$/, '')
  const [program = ''] = command?.trim().split(/\s/) ?? []
  const file = basename(workflow ?? program).replace(/\.\w+$/, '')
  // A file may have spaces in its name, as the title of a checkpoint does; a model may not.
  const name = (model || file).trim().replaceAll(/\s+/g, '-')
  return `${url === undefined ? type : new URL(url).hostname}/${name || type}`
}

/** A provider publishes the parameters of its models, so here they have a prompt alone. */
function documentOf(name: string, kind: Kind, type: string): ModelDocument {
  const { input } = PREVIEW_DOCUMENTS[kind]
  const { prompt } = input.properties
  const isHosted = Object.hasOwn(PROVIDERS, type) && prompt !== undefined
  return { name, kind, input: isHosted ? { ...input, properties: { prompt } } : input, default: true }
}

const TIMEOUT_MS = 5_000

interface CheckListensParts {
  readonly fetch: Fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Throws `network` if nothing listens at the address. A server that sends no answer in time may be busy. */
export async function checkListens(url: URL, { fetch, clock, signal }: CheckListensParts): Promise<void> {
  const limit = { timeoutMs: TIMEOUT_MS, reason: () => new Error('no response'), clock, signal }
  try {
    const send = (limited: AbortSignal) => fetch({ method: 'GET', url, headers: {}, signal: limited })
    const response = await withTimeout(send, limit)
    response.discard()
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof HttpFailure && !error.sent)
      throw new RushesError('network', `Nothing listens at ${url.origin}. No run was created.`, {
        hint: 'Start the model server, or change its address.',
      })
  }
}
