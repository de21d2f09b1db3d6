/** Parts of the context that are opened when a command first needs them: the local service and the recorder. */
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { printable, shortened } from '../../protocol/text.js'
import type { Engine } from '../../service/engines/engine.js'
import type { ModelSetEngine } from '../../service/models/model-set.js'
import { askServer } from '../models/ask-server.js'
import { type OpenedEngine, openLocalEngine } from '../models/local-engine.js'
import { type LocalModelsOptions, openLocalModels } from '../models/local-models.js'
import type { Env } from '../process/io.js'
import type { LocalChecks, LocalOptions, LocalService } from './local-service.js'

interface OpenLocalOptions extends Omit<LocalOptions, 'models' | 'engine'> {
  readonly localModels: Omit<LocalModelsOptions, 'engine'>
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
  { fetch, env, ...options }: OpenEngineOptions,
): Promise<OpenedEngine | undefined> {
  if (flag === undefined) return undefined
  return openLocalEngine({
    ...{ flag, env },
    ask: async (server) =>
      askServer(server, { ...options, fetch: await fetch(), timeoutMs: ENGINE_TIMEOUT_MS }),
  })
}

/** Opens the local service of `--local` with its models. */
export async function openLocal({
  localModels,
  lineEngine,
  fetch,
  engine,
  ...options
}: OpenLocalOptions): Promise<LocalService & LocalChecks> {
  const { openLocalService } = await import('./local-service.js')
  const { clock, env, render, note } = options
  const set = await openLocalModels({ ...localModels, engine: lineEngine }, render)
  const preview = await engine()
  const parts = { env, clock, fetch: await fetch(), urls: [], preview: () => preview }
  const all = render ? set.createEngine(parts) : undefined
  if (lineEngine !== undefined) {
    if (render && lineEngine.refused !== undefined) throw lineEngine.refused
    const [own] = set.models
    if (all !== undefined && own !== undefined) {
      describeEngine({ ...lineEngine, name: own.document.name }, all, note)
      if (own.note !== undefined) note(`${printable(own.note)}.`)
    }
  }
  const service = await openLocalService({ ...options, models: set.models, engine: all ?? preview })
  return {
    ...service,
    checkModel(model) {
      const found = set.models.find(({ document }) => document.name === model)
      if (found?.problem !== undefined) throw usageError(`The model ${model} cannot run. ${found.problem}`)
    },
    async checkRun(id, mustExist = false) {
      const problem = await service.findProblem(id, mustExist)
      if (problem === undefined) return
      throw usageError(
        `The model of ${id} cannot run. ${problem}`,
        'Repeat the command with the key of its provider, and with its files in their places.',
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
