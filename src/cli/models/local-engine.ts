/** The model of `--engine`: a document without a file, named after its server. Its runs carry it. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { listedValues } from '../../protocol/parameters.js'
import { PROVIDERS } from '../../service/engines/hosted/providers.js'
import type { Size } from '../../service/engines/sizes.js'
import { type EngineWord, readEngineWord, withKeyVariable } from '../../service/models/engine-word.js'
import type { AddedModel } from '../../service/models/model-set.js'
import { PREVIEW_DOCUMENTS } from '../../service/models/served-model.js'
import type { Env } from '../process/io.js'
import type { AskedServer, ServerAnswer } from './ask-server.js'

export interface LocalEngine {
  readonly name: string
  readonly kind: Kind
  /** The map `engine` of its document. */
  readonly engine: Readonly<Record<string, unknown>>
  /** The ratio of runs without `aspect_ratio`, if the server told its size. */
  readonly ratio?: string
}

export interface OpenedEngine extends LocalEngine {
  /** Why the model cannot render now. Reported before a run exists. */
  readonly refused?: RushesError
  /** Models of a server that has several of them, and that was given no name. */
  readonly others?: readonly string[]
}

interface OpenEngineOptions {
  /** Value of the flag, with its kind if it is known. */
  readonly flag: string
  readonly env: Env
  /** Undefined for help, which asks no server. */
  ask?(server: AskedServer): Promise<ServerAnswer | 'refused' | 'unauthorized' | undefined>
}

/** Throws `usage` for an invalid word. */
export async function openLocalEngine({ flag, env, ask }: OpenEngineOptions): Promise<OpenedEngine> {
  const [, prefix, typed = ''] = /^(?:(image|video)=)?(.*)$/s.exec(flag) ?? []
  const read = withKeyVariable(readEngineWord(typed, '--engine '), env)
  const kind = KINDS.find((each) => each === prefix) ?? (read.type === 'videos' ? 'video' : 'image')
  checkCommand(read)
  const path = read.workflow === undefined ? undefined : resolve(read.workflow)
  const map: EngineWord = path === undefined ? read : { ...read, workflow: path }
  const { type, url, key_env: keyVariable } = map
  const key = keyVariable === undefined ? undefined : env[keyVariable]?.trim() || undefined
  // A key that is not set is reported with the problems of the engine.
  const isAsked = url !== undefined && (keyVariable === undefined || key !== undefined)
  const answer = isAsked ? await ask?.({ type, url, kind, key }) : undefined
  if (answer === 'unauthorized') throw unauthorizedError(map)
  const isSilent = answer === undefined || answer === 'refused'
  const { models, size, native } = isSilent ? {} : answer
  // The own interface of stable-diffusion.cpp has typed parameters, and jobs that can be canceled.
  const isNative = url !== undefined && native?.includes(kind) && NATIVE_TYPES.includes(type)
  const own = map.model ?? (models?.length === 1 ? models[0] : undefined)
  const asked =
    url !== undefined && !['sdapi', 'sdcpp'].includes(type) && own !== undefined ? { model: own } : {}
  const sizes = await preferredSizes(kind, size ?? (await workflowSize(path)))
  return {
    ...{ name: nameOf(map, own), kind },
    engine: {
      ...(isNative
        ? { type: 'sdcpp', url: new URL(url).origin, ...(keyVariable && { key_env: keyVariable }) }
        : { ...map, ...asked }),
      ...(sizes && { sizes: sizes.sizes }),
    },
    ...(sizes && { ratio: sizes.ratio }),
    ...(answer === 'refused' && { refused: refusedError(map) }),
    ...(map.model === undefined && models !== undefined && models.length > 1 && { others: models }),
  }
}

/** Types of engines whose servers may be stable-diffusion.cpp. */
const NATIVE_TYPES: readonly string[] = ['images', 'videos', 'sdcpp']

/** A path that does not exist would only show after the run was created. */
function checkCommand({ type, command = '' }: EngineWord): void {
  if (type !== 'command') return
  const [path = ''] = command.trim().split(/\s/)
  if (path === '') throw usageError('--engine is empty.', 'Example: --engine images:http://127.0.0.1:1234/v1')
  if (/^\.{0,2}\//.test(path) && !existsSync(path))
    throw usageError(`--engine: ${path}: no such file.`, 'Example: --engine ./my-model.sh')
}

const refusedError = ({ url = '' }: EngineWord) =>
  new RushesError('network', `Nothing listens at ${new URL(url).origin}. No run was created.`, {
    hint: 'Start the model server, or change its address.',
  })

/** Thrown before a run exists. */
const unauthorizedError = ({ url = '', key_env: variable }: EngineWord) =>
  new RushesError('no_api_key', `The server at ${new URL(url).origin} refused access. No run was created.`, {
    hint:
      variable === undefined
        ? 'Set its key in RUSHES_ENGINE_KEY.'
        : `Check the key in ${variable}, which is sent to the server of --engine.`,
  })

/** For example `127.0.0.1/sd-cpp-local`. */
function nameOf(engine: EngineWord, own: string | undefined): string {
  const { type, url, workflow, command = '', model = '' } = engine
  if (url === undefined && type !== 'command') return model.replace(/:.*$/, '')
  const program = command.trim().split(/\s/)[0] ?? ''
  const file = basename(workflow ?? program).replace(/\.\w+$/, '')
  // The title of a checkpoint ends with a hash: `flux1-dev.safetensors [a1b2c3]`.
  const listed = own
    ?.replace(/ \[\w+\]$/, '')
    .replaceAll(/[^\w.:@/-]+/g, '-')
    .slice(0, 100)
  const last = listed || file || type
  return `${url === undefined ? type : new URL(url).hostname}/${last}`
}

/** The size that the workflow itself has. Its problems are reported with those of the engine. */
async function workflowSize(path: string | undefined): Promise<Size | undefined> {
  if (path === undefined || !existsSync(path)) return undefined
  const [{ parseWorkflow }, { findSlots }, { sizeOfWorkflow }] = await Promise.all([
    import('../../service/engines/comfyui/workflow.js'),
    import('../../service/engines/comfyui/find-slots.js'),
    import('../../service/engines/comfyui/slots.js'),
  ])
  const parsed = parseWorkflow(readFileSync(path, 'utf8'))
  return parsed.ok ? sizeOfWorkflow(parsed.value, findSlots(parsed.value).slots) : undefined
}

/** The map `sizes` with as many pixels as the server's own size. */
async function preferredSizes(kind: Kind, own: Size | undefined) {
  if (own === undefined) return undefined
  const { sizesLike, sizeText } = await import('../../service/engines/sizes.js')
  const { aspect_ratio: schema } = PREVIEW_DOCUMENTS[kind].input.properties
  const { ratio, sizes } = sizesLike(kind, own, (schema && listedValues(schema)) ?? [])
  if (ratio === undefined) return undefined
  const entries = sizes.map(({ ratio: each, size }) => [
    kind === 'image' ? each : `${each} 720p`,
    sizeText(size),
  ])
  return { ratio, sizes: Object.fromEntries(entries) as Readonly<Record<string, string>> }
}

/** The model of the engine. A provider publishes the parameters of its models, so here they have a prompt alone. */
export function addedModel({ name, kind, engine, ratio }: LocalEngine): AddedModel {
  const { input } = PREVIEW_DOCUMENTS[kind]
  const { prompt, aspect_ratio: aspect } = input.properties
  const isHosted = Object.hasOwn(PROVIDERS, String(engine.type))
  const properties = isHosted
    ? { ...(prompt && { prompt }) }
    : { ...input.properties, ...(ratio && aspect && { aspect_ratio: { ...aspect, default: ratio } }) }
  const document: ModelDocument = {
    name,
    kind,
    input: { ...input, properties } as ModelDocument['input'],
    default: true,
  }
  // Without the rest of the flag, which may be long.
  const flag = `--engine ${engine.type === 'command' ? '' : `${engine.type}:`}…`
  return { document, engine, flag }
}
