/**
 * Creates the program of a `rushes run` line. The flags of `run image` and `run video` follow from the document of the
 * model, so the model is found before commander parses the line.
 */
import type { Command, Option } from 'commander'
import { isModelName, KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import type { CommandEnvironment } from '../context/context.js'
import { type Globals, globalsOf, plainWords } from '../flags/globals.js'
import type { NamedModel } from '../help/usage-errors.js'
import type { Env } from '../process/io.js'
import { createProgram } from '../program.js'
import { createQuickSettings, readOr } from '../settings/quick-settings.js'
import { MODEL_SETTINGS, wrongKind } from '../settings/required-settings.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import type { KnownModels } from './known-models.js'

export interface ModelProgram {
  readonly program: Command
  /** Undefined if the line names no model and no setting does. */
  readonly model?: NamedModel
}

export interface ModelProgramOptions {
  readonly argv: readonly string[]
  readonly env: Env
  readonly environment: CommandEnvironment
  /** Opens the documents of the models, which a command can ask for; asks the server of the engine. Not called for help. */
  freshModels?(globals: Globals): Promise<KnownModels>
}

/** Throws `usage` for a model of another kind. */
export async function createModelProgram(options: ModelProgramOptions): Promise<ModelProgram> {
  const { argv, env, environment, freshModels } = options
  const program = await createProgram('run', environment)
  const { kind, command, word, typed, globals, isHelp } = readLine(program, argv)
  if (command !== 'run') return { program }
  const settings = createQuickSettings(env, globals)
  const isLocal = (await settings.address()) === LOCAL_ADDRESS
  const set = typed ?? (kind && !isLocal ? await settings.setting(MODEL_SETTINGS[kind]) : undefined)
  const createsRun = !isHelp && (kind !== undefined || word === 'model')
  const known = await open()
  const name = set ?? (kind && known?.defaultOf(kind)?.name)
  if (name === undefined || !isModelName(name)) return { program }
  const document = known?.find(name)
  if (document !== undefined && known !== undefined)
    return known.checked(() => withFlagsOf(known.find(name) ?? document))
  if (!isHelp) return { program, model: { name, isKnown: false } }
  if (kind === undefined || typed === undefined) return { program }
  const { builtInDocument } = await import('./known-models.js')
  const builtIn = builtInDocument(kind, name)
  const description = `its parameters are not known here. These are the built-in ones of ${kind} models.`
  const model = { ...builtIn, input: { ...builtIn.input, description } }
  return { program: await createProgram('run', { ...environment, model }) }

  async function open(): Promise<KnownModels | undefined> {
    // The server of an engine shows which parameters its model has.
    const isAsked = createsRun && (!isLocal || globals.engine !== undefined)
    if (isAsked && freshModels !== undefined) return freshModels(globals)
    if (!isLocal && set === undefined) return undefined
    const { openModels } = await import('./known-models.js')
    // The command itself reports documents that cannot be read.
    return readOr(undefined, () => openModels({ env, globals }))
  }

  async function withFlagsOf(document: ModelDocument): Promise<ModelProgram> {
    const isOther = kind !== undefined && document.kind !== kind
    if (isOther && (!isHelp || typed !== undefined)) throw wrongKind(document, kind, typed !== undefined)
    const model = { name: document.name, isKnown: !isOther }
    return {
      program: isOther ? program : await createProgram('run', { ...environment, model: document }),
      model,
    }
  }
}

interface Line {
  readonly command: string | undefined
  /** Subcommand of the command. */
  readonly word: string | undefined
  readonly kind: Kind | undefined
  /** The model on the line. */
  readonly typed: string | undefined
  readonly globals: Globals
  readonly isHelp: boolean
}

/**
 * Reads the line with the flags of the built-in schema. The value of an unknown flag is then a word, which makes no
 * difference to the flags that count here.
 */
export function readLine(program: Command, argv: readonly string[]): Line {
  let at = program
  const path: string[] = []
  const words: string[] = []
  const values: Record<string, unknown> = {}
  let awaiting: Option | undefined
  const end = argv.indexOf('--')
  for (const [index, word] of argv.entries()) {
    if (awaiting !== undefined) {
      values[awaiting.attributeName()] = word
      awaiting = undefined
    } else if (index !== end && word.startsWith('-') && word !== '-' && (end === -1 || index < end))
      awaiting = takeFlags(at, word, values)
    else if (index !== end && !(at === program && word === 'help')) {
      const child = words.length === 0 ? at.commands.find((each) => each.name() === word) : undefined
      if (child === undefined) words.push(word)
      else path.push(word)
      at = child ?? at
    }
  }
  const [command, word] = path
  const model = word === 'model' ? words[0] : values.model
  const kind = KINDS.find((each) => each === word)
  return {
    ...{ command, word, kind },
    typed: typeof model === 'string' ? model : undefined,
    globals: globalsOf(values, kind),
    isHelp: values.help === true || plainWords(argv)[0] === 'help',
  }
}

/** Stores the flags of a word: `--flag`, `--flag=value`, `-dn4`. Returns the flag whose value is the next word. */
function takeFlags(command: Command, word: string, values: Record<string, unknown>): Option | undefined {
  const options = command.createHelp().visibleOptions(command)
  const [name = '', value] = word.startsWith('--') ? word.split(/=(.*)/s) : []
  const names = name === '' ? [...word.slice(1)].map((letter) => `-${letter}`) : [name]
  for (const [index, each] of names.entries()) {
    const option = options.find(({ long, short }) => long === each || short === each)
    if (option === undefined) continue
    values[option.attributeName()] = value ?? !option.negate
    if (!option.required && !option.optional) continue
    return value === undefined && index === names.length - 1 ? option : undefined
  }
  return undefined
}
