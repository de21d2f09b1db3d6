/**
 * Completes command lines for the shell scripts: `rushes __complete <words before the cursor...> <word at the cursor>`.
 * Prints one line for each candidate, with value and description separated by a tab. The last line starts with a colon
 * and says whether the shell completes paths, and after which prefix. Only the scripts in this folder read this format,
 * so it may change with them. It runs at every Tab: it prints no errors, writes nothing, and needs neither key nor
 * network.
 */
import type { Argument, Command, Option } from 'commander'
import { KINDS } from '../../protocol/models.js'
import { builtInSchema } from '../../protocol/parameters.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment } from '../context/context.js'
import { commandWord, globalsOf } from '../flags/globals.js'
import { repeated } from '../flags/values.js'
import { TOPICS } from '../help/format-help.js'
import type { Env } from '../process/io.js'
import { createProgram } from '../program.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import { type Cursor, cursorOf, type Wanted } from './cursor.js'
import {
  type Completion,
  createLocalNames,
  isPlainWord,
  type LocalNames,
  type RunName,
} from './local-names.js'

/** Returns the lines to print. The last line, which starts with a colon, is always present. */
export async function completeLine(line: readonly string[], env: Env): Promise<string> {
  try {
    const words = line.slice(0, -1)
    const program = await programOf(words, env)
    const cursor = cursorOf(program, words, line.at(-1) ?? '')
    return textOf(cursor, await suggestionsAt(cursor, createLocalNames(env, globalsAt(cursor))))
  } catch {
    return textOf({ wants: { kind: 'nothing' }, lead: '', stem: '' }, NOTHING)
  }
}

/** For `run`, the flags are those of the model on the line or in the settings. The service is not asked. */
async function programOf(words: readonly string[], env: Env): Promise<Command> {
  const environment: CommandEnvironment = { run: async () => {}, print: () => {} }
  const word = commandWord(words)
  if (word !== 'run') return createProgram(word, environment)
  const { createModelProgram } = await import('../models/model-program.js')
  return (await createModelProgram({ argv: words, env, environment, isCompletion: true })).program
}

async function suggestionsAt(cursor: Cursor, known: LocalNames): Promise<Suggestions> {
  const { wants, command, path } = cursor
  switch (wants.kind) {
    case 'flag':
      return { candidates: flagsOf(cursor) }
    case 'command':
      return { candidates: commandsOf(command) }
    case 'topic':
      return {
        candidates: [
          ...commandsOf(command),
          ...Object.entries(TOPICS).map(([value, about]) => ({ value, about })),
        ],
      }
    case 'value':
      return sourceOfOption(wants.option)?.(cursor, known) ?? NOTHING
    case 'argument':
      return sourceOfArgument(path, wants.argument)?.(cursor, known) ?? NOTHING
    case 'nothing':
      return NOTHING
  }
}

const commandsOf = (command: Command): readonly Completion[] =>
  command
    .createHelp()
    .visibleCommands(command)
    // A group of commands has --help; its `help` subcommand only repeats it.
    .filter((child) => command.parent === null || child.name() !== 'help')
    .map((child) => ({ value: child.name(), about: child.description() }))

/** Flags that are not on the line yet, and flags that may be repeated. */
function flagsOf({ command, given, stem }: Cursor): readonly Completion[] {
  const unused = command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => !given.has(option) || isRepeatable(option))
  return unused.flatMap(({ long, short, description }) =>
    [long, stem === '-' || stem === short ? short : undefined].flatMap((value) =>
      value ? [{ value, about: description }] : [],
    ),
  )
}

export const isRepeatable = ({ parseArg }: Option): boolean => parseArg === repeated

const globalsAt = ({ given }: Cursor) =>
  globalsOf(Object.fromEntries([...given].map(([option, value]) => [option.attributeName(), value])))

function textOf({ lead, stem }: Wanted, { candidates, paths }: Suggestions): string {
  const lines = candidates
    .filter(({ value }) => value.startsWith(stem))
    .map(({ value, about }) => `${lead}${value}\t${printable(about)}\n`)
  return `${lines.join('')}:${paths === undefined ? 'none' : `${paths.of} ${lead}${paths.lead}`}\n`
}

export interface Suggestions {
  readonly candidates: readonly Completion[]
  /** Lets the shell complete a path after `lead`, a prefix that is not part of the path. */
  readonly paths?: { readonly of: 'files' | 'folders'; readonly lead: string }
}

type SuggestionSource = (cursor: Cursor, names: LocalNames) => Suggestions | Promise<Suggestions>

const suggest = (candidates: readonly Completion[]): Suggestions => ({ candidates })
const NOTHING = suggest([])
const FILES: Suggestions = { candidates: [], paths: { of: 'files', lead: '' } }
const FOLDERS: Suggestions = { candidates: [], paths: { of: 'folders', lead: '' } }

const files: SuggestionSource = () => FILES
const words = (values: readonly string[], about = ''): Suggestions =>
  suggest(values.map((value) => ({ value, about })))

const suggestRuns = (runs: readonly RunName[], lead = ''): Suggestions =>
  suggest(runs.map(({ name, about }) => ({ value: `${lead}${name}`, about })))

/** Suggests runs that the command applies to; all runs if none of these matches the typed word. */
const runs =
  (applies: (run: RunName) => boolean): SuggestionSource =>
  async ({ stem, words: before }, names) => {
    const all = (await names.runs()).filter(
      ({ name, isConfirmed }) => isConfirmed && name.startsWith(stem) && !before.includes(name),
    )
    const applicable = all.filter(applies)
    return suggestRuns(applicable.length > 0 ? applicable : all)
  }

/** Suggests files, and the outputs of earlier runs when the typed word can be the start of `run:`. */
const sources: SuggestionSource = async ({ stem }, names) => {
  if (stem === '' || !(stem.startsWith('run:') || 'run:'.startsWith(stem))) return FILES
  const found = suggestRuns(
    (await names.runs()).filter(({ phase }) => phase === 'succeeded'),
    'run:',
  )
  return stem.startsWith('run:') ? found : { ...FILES, candidates: found.candidates }
}

/** Completes a file path after `@`. */
const inputs: SuggestionSource = ({ stem }) =>
  stem.startsWith('@') ? { candidates: [], paths: { of: 'files', lead: '@' } } : NOTHING

const models: SuggestionSource = async ({ path }, names) => {
  const kind = KINDS.find((each) => each === path.at(-1))
  return suggest(await names.models(kind))
}

const modelNames: SuggestionSource = async ({ command }, names) =>
  suggest([
    ...commandsOf(command),
    ...KINDS.map((kind) => ({ value: kind, about: builtInSchema(kind).description })),
    ...(await names.models(undefined)),
  ])

/**
 * Suggestions for the value of a flag, by the flag, or by the name of the value in the help: `<path>`, `<kind>`. A
 * value without a row gets no suggestions.
 */
const VALUES: Readonly<Record<string, SuggestionSource>> = {
  'file or url': files,
  json: inputs,
  path: files,
  folder: () => FOLDERS,
  source: sources,
  'provider/name': models,
  name: async (_, names) => suggest(await names.profiles()),
  kind: () => words(KINDS),
  '--label': async (_, names) => words(await names.labels()),
  status: async (_, names) => words([...new Set((await names.everyRun()).map(({ status }) => status))]),
}

/** Suggestions for an argument, by command and name of the argument. An argument without a row gets no suggestions. */
const ARGUMENTS: Readonly<Record<string, SuggestionSource>> = {
  'run model provider/name': models,
  'status id': runs(() => true),
  'wait id': runs(({ phase }) => phase === 'running'),
  'cancel id': runs(({ phase }) => phase === 'running'),
  'download id': runs(({ phase }) => phase === 'succeeded'),
  'open id': runs(({ phase }) => phase === 'succeeded'),
  'show id': async (_, names) => suggestRuns(await names.everyRun()),
  'forget id or key': async (_, names) => suggestRuns(await names.everyRun()),
  'batch manifest': files,
  'gallery manifest': files,
  'models name': modelNames,
  'models remove name': async (_, names) => words(await names.added()),
  'models add file': files,
  'models import model': () => words(['fal:', 'replicate:'], 'Then the name of the model'),
  'config get key': () => settings(),
  'config set key': () => settings(),
  'config unset key': () => settings(),
  'admin backup file': files,
}

const settings = (): Suggestions =>
  suggest(CONFIG_KEYS.map((key) => ({ value: key, about: settingOfKey(key).about })))

export function sourceOfOption(option: Option): SuggestionSource | undefined {
  // Values of a document are not trusted: inside an open quote, the shell would insert them unquoted.
  const choices = option.argChoices?.filter(isPlainWord)
  if (choices !== undefined) return () => words(choices)
  const [, name = ''] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(option.flags) ?? []
  return VALUES[option.long ?? ''] ?? VALUES[name]
}

export function sourceOfArgument(path: readonly string[], argument: Argument): SuggestionSource | undefined {
  const choices = argument.argChoices
  return choices === undefined ? ARGUMENTS[[...path, argument.name()].join(' ')] : () => words(choices)
}
