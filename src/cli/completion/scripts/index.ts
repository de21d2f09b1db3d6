/** The scripts, by shell. They are thin: all that is known is known by `rushes __complete`. */
import bash from './rushes.bash?raw'
import fish from './rushes.fish?raw'
import zsh from './rushes.zsh?raw'

export const SCRIPTS = { bash, zsh, fish } as const

export type Shell = keyof typeof SCRIPTS
