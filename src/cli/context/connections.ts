/** Parts of the context that are opened when a command first needs them: the local service and the recorder. */
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { printable, shortened } from '../../protocol/text.js'
import type { Engine } from '../../service/engines/engine.js'
import type { ModelSetEngine } from '../../service/models/model-set.js'
import { askServer } from '../models/ask-server.js'
import { type OpenedEngine, openLocalEngine, readEngines, rememberEngine } from '../models/local-engine.js'
import { type LocalModelsOptions, openLocalModels } from '../models/local-models.js'
import type { Env } from '../process/io.js'
import type { LocalOptions, LocalService } from './local-service.js'

interface OpenLocalOptions extends Omit<LocalOptions, 'models' | 'engine'> {
  readonly localModels: Omit<LocalModelsOptions, 'engine' | 'earlier'>
  readonly stateFolder: string
  /** The engine of `--engine`. */
  readonly lineEngine: OpenedEngine | undefined
  fetch(): Promise<Fetch>
  /** Creates the preview renderer. */
  engine(): Promise<Engine>
}

/** Time for the list of models, which a busy server may not send. */
const ENGINE_TIMEOUT_MS = 5_000

interface OpenEngineOptions {
  readonly env: Env
  readonly clock: Clock
  readonly signal: AbortSignal
  fetch(): Promise<Fetch>
}

/** Opens the engine of `--engine`: asks its server for the name of the model. Undefined without the flag. */
export async function openEngine(
  flag: string | undefined,
  stateFolder: string,
  { fetch, env, ...options }: OpenEngineOptions,
): Promise<OpenedEngine | undefined> {
  if (flag === undefined) return undefined
  return openLocalEngine({
    ...{ flag, stateFolder, env },
    ask: async (server) =>
      askServer(server, { ...options, fetch: await fetch(), timeoutMs: ENGINE_TIMEOUT_MS }),
  })
}

/** Opens the local service of `--local` with its models, and remembers the engine of `--engine`. */
export async function openLocal({
  localModels,
  stateFolder,
  lineEngine,
  fetch,
  engine,
  ...options
}: OpenLocalOptions): Promise<LocalService & { checkModel(model: string, mustExist?: boolean): void }> {
  const { openLocalService } = await import('./local-service.js')
  const { clock, env, render, note } = options
  const earlier = readEngines(stateFolder)
  const set = await openLocalModels({ ...localModels, engine: lineEngine, earlier }, render)
  const preview = await engine()
  const parts = { env, clock, fetch: await fetch(), urls: [], preview: () => preview }
  const all = render ? set.createEngine(parts) : undefined
  if (lineEngine !== undefined) {
    if (render && lineEngine.refused !== undefined) throw lineEngine.refused
    await rememberEngine(stateFolder, lineEngine)
    if (all !== undefined) describeEngine(lineEngine, all, note)
    const { note: found } = set.models.find(({ document }) => document.name === lineEngine.name) ?? {}
    if (all !== undefined && found !== undefined) note(`${printable(found)}.`)
  }
  const service = await openLocalService({ ...options, models: set.models, engine: all ?? preview })
  return {
    ...service,
    checkModel(model, mustExist = false) {
      const found = set.models.find(({ document }) => document.name === model)
      if (found?.problem !== undefined) throw usageError(`The model ${model} cannot run. ${found.problem}`)
      if (found === undefined && mustExist)
        throw usageError(
          `The model ${model} is not there, so a job of the run could not be canceled.`,
          'Repeat the command with the key of its provider, and with --engine or local.models as when the run was created.',
        )
    },
  }
}

function describeEngine(
  { name, engine, others = [], ratio = '' }: OpenedEngine,
  { describeEngine: describe, describePayer }: ModelSetEngine,
  note: OpenLocalOptions['note'],
): void {
  const sizes = engine.sizes as Readonly<Record<string, string>> | undefined
  const size = Object.entries(sizes ?? {}).find(([key]) => key.split(' ')[0] === ratio)?.[1]
  const parts = [`${name} (${describe(name)})`, size, describePayer(name)]
  note(`Model: ${parts.filter((part) => part !== undefined).join(', ')}.`)
  if (others.length > 0)
    note(
      `Its server has several models (${shortened(others.map(printable).join(', '), 200)}) and chooses one. ` +
        `To name one: --engine ${engine.type}:${engine.url}#<model>`,
    )
}
