/**
 * What can be typed at the cursor of a command line. Walks through the words before it by commander's own lists of commands
 * and flags, as its parser would. Pure.
 */
import type { Argument, Command, Option } from 'commander'

export interface Cursor {
  readonly command: Command
  /** The names below `rushes`: `run image`. */
  readonly path: readonly string[]
  readonly wants:
    | { readonly kind: 'flag' }
    | { readonly kind: 'command' }
    | { readonly kind: 'topic' }
    | { readonly kind: 'value'; readonly option: Option }
    | { readonly kind: 'argument'; readonly argument: Argument }
    | { readonly kind: 'nothing' }
  /** The part of the word before the completed part: `--flag=`. */
  readonly lead: string
  /** The typed beginning of the completed part. */
  readonly stem: string
  readonly given: ReadonlyMap<Option, string | true>
  /** The arguments of the command before the cursor. */
  readonly words: readonly string[]
}

/** `words` without the program's name; `stem` is the word at the cursor, up to the cursor. */
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
  let noFlags = false

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

  /** `-dn 4`: flags without a value, then at most one with a value, which may follow directly (`-n4`). */
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
    } else if (noFlags || isHelp || word === '-' || !word.startsWith('-')) takeWord(word)
    else if (word === '--') noFlags = true
    else if (word.startsWith('--')) takeLong(word)
    else takeShort(word)
  }

  /** What `help` can be asked about next. */
  function helped(): 'topic' | 'command' | 'nothing' {
    if (words.length > 0 || command.commands.length === 0) return 'nothing'
    return command === program ? 'topic' : 'command'
  }

  function wants(stem: string): Pick<Cursor, 'wants' | 'lead' | 'stem'> {
    const whole = { lead: '', stem }
    if (awaiting !== undefined) return { ...whole, wants: { kind: 'value', option: awaiting } }
    if (isHelp) return { ...whole, wants: { kind: helped() } }
    if (!noFlags && stem.startsWith('-')) {
      const { name, value } = splitLong(stem)
      if (value === undefined) return { ...whole, wants: { kind: 'flag' } }
      const option = optionOf(name)
      return option === undefined || !takesValue(option)
        ? { ...whole, wants: { kind: 'nothing' } }
        : { lead: `${name}=`, stem: value, wants: { kind: 'value', option } }
    }
    if (command.commands.length > 0)
      return { ...whole, wants: { kind: words.length === 0 ? 'command' : 'nothing' } }
    const argument = argumentAt(command, words.length)
    return { ...whole, wants: argument === undefined ? { kind: 'nothing' } : { kind: 'argument', argument } }
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
