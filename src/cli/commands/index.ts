/** The commands, in the order of the help. To add a command, add a file and a row here. */
import type { Command } from 'commander'
import type { CommandEnvironment } from '../context/context.js'

interface CommandFile {
  register(command: Command, environment: CommandEnvironment): void
}

/** `load`: loads the command's file, which the build puts in a separate chunk. */
type CommandRow = readonly [name: string, about: string, load: () => Promise<CommandFile>]

const logoutFile = async () => ({ register: (await import('./login.js')).registerLogout })
const downloadFile = async () => ({ register: (await import('./wait.js')).registerDownload })

/** By the title of their group in `rushes --help`. */
export const COMMANDS: Readonly<Record<string, readonly CommandRow[]>> = {
  'Create:': [
    ['run', 'Create a run, wait for it, and print or download its outputs', () => import('./run.js')],
    ['batch', 'Create only the assets that are missing or out of date', () => import('./batch.js')],
    ['models', 'List, add and import models, or show the parameters of one', () => import('./models.js')],
  ],
  'Follow runs at the service:': [
    ['status', 'Show the current status of runs', () => import('./status.js')],
    ['wait', 'Wait for runs that were created earlier', () => import('./wait.js')],
    ['download', 'Download the outputs of finished runs', downloadFile],
    ['cancel', 'Cancel runs that have not ended', () => import('./cancel.js')],
  ],
  'Runs on this machine:': [
    ['list', 'List the runs created on this machine', () => import('./list.js')],
    ['show', 'Show details of a run', () => import('./show.js')],
    ['open', 'Open the result of a run', () => import('./open.js')],
    ['gallery', 'Build an HTML gallery of your results', () => import('./gallery.js')],
    ['spend', 'Sum the charges of runs, or their estimates', () => import('./spend.js')],
    ['forget', 'Remove runs from the journal', () => import('./forget.js')],
  ],
  'Set up and operate:': [
    ['login', 'Store the API key and the service URL', () => import('./login.js')],
    ['logout', 'Remove the stored API key', logoutFile],
    ['config', 'Show and change the settings', () => import('./config.js')],
    ['doctor', 'Check settings, service, disk and journal', () => import('./doctor.js')],
    ['completion', 'Print the completion script for bash, zsh or fish', () => import('./completion.js')],
    ['mcp', 'Run an MCP server for agents', () => import('./mcp.js')],
    ['serve', 'Run the local service', () => import('./serve.js')],
    ['admin', 'Manage accounts, keys and balances of a local service', () => import('./admin.js')],
  ],
}
