/**
 * Finds out which kind of word the cursor of a command line expects. Reads the words before the cursor with commander's
 * own lists of commands and flags, as commander's parser does. Pure.
 */
import type { Argument, Command, Option } from 'commander'

/** What the word at the cursor may be. */
export interface Wanted {
  readonly wants:
    | { readonly kind: 'flag' }
    | { readonly kind: 'command' }
    | { readonly kind: 'topic' }
    | { readonly kind: 'value'; readonly option: Option }
    | { readonly kind: 'argument'; readonly argument: Argument }
    | { readonly kind: 'nothing' }
  /** Part of the word before the completed part, for example `--flag=`. */
  readonly lead: string
  /** Typed beginning of the completed part. */
  readonly stem: string
}

export interface Cursor extends Wanted {
  readonly command: Command
  /** Names of the command and its subcommands, without `rushes`: `run`, `image`. */
  readonly path: readonly string[]
  readonly given: ReadonlyMap<Option, string | true>
  /** Arguments of the command before the cursor. */
  readonly words: readonly string[]
}

/**
 * `words`: the words before the cursor, without the program's name. `stem`: the word at the cursor, up to the cursor.
 */
export function cursorOf(program: Command, words: readonly string[], stem: string): Cursor {
  const walk = createWalk(program)
  for (const word of words) walk.step(word)
  return walk.end(stem)
}

function createWalk(program: Command) {
  let command = program
  const path: string[] = []
  const given = new Map<Option, string | true>()
  let words: string[] = []
  let awaiting: Option | undefined
  let isHelp = false
  let afterDoubleDash = false

  const optionOf = (name: string): Option | undefined =>
    command
      .createHelp()
      .visibleOptions(command)
      .find(({ long, short }) => long === name || short === name)

  function takeLong(word: string): void {
    const { name, value } = splitLong(word)
    const option = optionOf(name)
    if (option === undefined) return
    given.set(option, value ?? true)
    if (value === undefined && takesValue(option)) awaiting = option
  }

  /**
   * Reads short flags such as `-dn 4`: flags without a value, then at most one flag with a value, which may follow
   * directly (`-n4`).
   */
  function takeShort(word: string): void {
    const letters = [...word.slice(1)]
    for (const [at, letter] of letters.entries()) {
      const option = optionOf(`-${letter}`)
      if (option === undefined) return
      given.set(option, true)
      if (!takesValue(option)) continue
      if (at === letters.length - 1) awaiting = option
      return
    }
  }

  function takeWord(word: string): void {
    const child = words.length === 0 ? command.commands.find((each) => each.name() === word) : undefined
    if (command === program && word === 'help') isHelp = true
    else if (child !== undefined) {
      command = child
      path.push(word)
    } else words = [...words, word]
  }

  function step(word: string): void {
    if (awaiting !== undefined) {
      given.set(awaiting, word)
      awaiting = undefined
    } else if (afterDoubleDash || isHelp || word === '-' || !word.startsWith('-')) takeWord(word)
    else if (word === '--') afterDoubleDash = true
    else if (word.startsWith('--')) takeLong(word)
    else takeShort(word)
  }

  /** The kind of word that may follow `help`. */
  function wantsAfterHelp(): 'topic' | 'command' | 'nothing' {
    if (words.length > 0 || command.commands.length === 0) return 'nothing'
    return command === program ? 'topic' : 'command'
  }

  function wants(stem: string): Wanted {
    const plain = { lead: '', stem }
    if (awaiting !== undefined) return { ...plain, wants: { kind: 'value', option: awaiting } }
    if (isHelp) return { ...plain, wants: { kind: wantsAfterHelp() } }
    if (!afterDoubleDash && stem.startsWith('-')) {
      const { name, value } = splitLong(stem)
      if (value === undefined) return { ...plain, wants: { kind: 'flag' } }
      const option = optionOf(name)
      return option === undefined || !takesValue(option)
        ? { ...plain, wants: { kind: 'nothing' } }
        : { lead: `${name}=`, stem: value, wants: { kind: 'value', option } }
    }
    if (command.commands.length > 0 && command.registeredArguments.length === 0)
      return { ...plain, wants: { kind: words.length === 0 ? 'command' : 'nothing' } }
    const argument = argumentAt(command, words.length)
    return { ...plain, wants: argument === undefined ? { kind: 'nothing' } : { kind: 'argument', argument } }
  }

  return { step, end: (stem: string): Cursor => ({ command, path, given, words, ...wants(stem) }) }
}

const takesValue = ({ required, optional }: Option): boolean => required || optional

function splitLong(word: string): { readonly name: string; readonly value: string | undefined } {
  const at = word.startsWith('--') ? word.indexOf('=') : -1
  return at === -1 ? { name: word, value: undefined } : { name: word.slice(0, at), value: word.slice(at + 1) }
}

function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  const last = registeredArguments.at(-1)
  return registeredArguments[index] ?? (last?.variadic === true ? last : undefined)
}
