/** The flags of `serve` for engines of one's own: `--engine`, `--engine-timeout`, `--model-name`. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import { isModelName, KINDS, type Kind } from '../../protocol/models.js'
import { LOCAL_MODELS } from '../../service/local-models.js'
import { parseDuration } from './duration.js'
import { repeated } from './repeated.js'

export interface EngineFlags {
  readonly engine?: readonly string[]
  readonly engineTimeout: string
  readonly modelName?: readonly string[]
}

export interface Engines {
  /** Shell command of each kind; kinds without one use the preview renderer. */
  readonly commands: Partial<Readonly<Record<Kind, string>>>
  /** Infinity: no limit. */
  readonly limitMs: number
  readonly models: Readonly<Record<Kind, string>>
}

export const addEngineFlags = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--engine <kind=command>',
        'Command that renders the outputs of this kind, video or image (repeatable)',
      ).argParser(repeated),
    )
    .addOption(
      new Option(
        '--engine-timeout <duration>',
        'Time limit for one run of that command; 0 for no limit',
      ).default('30m'),
    )
    .addOption(
      new Option(
        '--model-name <kind=name>',
        'Name of the model of this kind, as provider/name (repeatable)',
      ).argParser(repeated),
    )

/** Throws `usage`. */
export function enginesOf({ engine = [], engineTimeout, modelName = [] }: EngineFlags): Engines {
  const commands = byKind('--engine', engine)
  const names = byKind('--model-name', modelName)
  const models = { ...LOCAL_MODELS, ...names }
  for (const name of Object.values(names))
    if (!isModelName(name))
      throw usageError(
        `--model-name: "${name}" is not a valid model name.`,
        'A model name has the form <provider>/<name>.',
      )
  if (models.video === models.image)
    throw usageError(`--model-name: ${models.video} is used for both models.`, 'Use two different names.')
  const limitMs = parseDuration(engineTimeout, '--engine-timeout')
  return { commands, limitMs: limitMs === 0 ? Number.POSITIVE_INFINITY : limitMs, models }
}

function byKind(flag: string, words: readonly string[]): Partial<Record<Kind, string>> {
  const found: Partial<Record<Kind, string>> = {}
  for (const word of words) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(word) ?? []
    const kind = KINDS.find((each) => each === name)
    if (kind === undefined || value.trim() === '')
      throw usageError(
        `${flag}: "${word}" does not have the form ${KINDS.map((each) => `${each}=...`).join(' or ')}.`,
        `Example: ${flag} video=${flag === '--engine' ? './my-model.sh' : 'acme/my-model'}`,
      )
    if (found[kind] !== undefined) throw usageError(`${flag} is given twice for ${kind}.`)
    found[kind] = value
  }
  return found
}
