/** The commands, in the order of the help. To add a command, add a file and a row here. */
import type { Command } from 'commander'
import type { CommandEnvironment } from '../context/context.js'

interface Row {
  readonly name: string
  readonly about: string
  /** Loads the command's file, which the build puts in a separate chunk. */
  load(): Promise<{ register(command: Command, environment: CommandEnvironment): void }>
}

export interface CommandRow extends Row {
  /** Title of its group in `rushes --help`. */
  readonly group: string
}

const group = (title: string, rows: readonly Row[]): readonly CommandRow[] =>
  rows.map((row) => ({ ...row, group: title }))

export const COMMANDS: readonly CommandRow[] = [
  ...group('Create:', [
    {
      name: 'run',
      about: 'Create a run, wait for it, and print or download its outputs',
      load: () => import('./run.js'),
    },
    {
      name: 'batch',
      about: 'Create only the assets that are missing or out of date',
      load: () => import('./batch.js'),
    },
    {
      name: 'models',
      about: 'List, add and import models, or show the parameters of one',
      load: () => import('./models.js'),
    },
  ]),
  ...group('Follow runs at the service:', [
    { name: 'status', about: 'Show the current status of runs', load: () => import('./status.js') },
    { name: 'wait', about: 'Wait for runs that were created earlier', load: () => import('./wait.js') },
    {
      name: 'download',
      about: 'Download the outputs of finished runs',
      load: () => import('./download.js'),
    },
    { name: 'cancel', about: 'Cancel runs that have not ended', load: () => import('./cancel.js') },
  ]),
  ...group('Runs on this machine:', [
    { name: 'list', about: 'List the runs created on this machine', load: () => import('./list.js') },
    { name: 'show', about: 'Show details of a run', load: () => import('./show.js') },
    { name: 'open', about: 'Open the results of runs', load: () => import('./open.js') },
    { name: 'gallery', about: 'Build an HTML gallery of your results', load: () => import('./gallery.js') },
    { name: 'spend', about: 'Sum the estimates of runs', load: () => import('./spend.js') },
    { name: 'forget', about: 'Remove runs from the journal', load: () => import('./forget.js') },
  ]),
  ...group('Set up and operate:', [
    { name: 'login', about: 'Store the API key and the service URL', load: () => import('./login.js') },
    { name: 'logout', about: 'Remove the stored API key', load: () => import('./logout.js') },
    { name: 'config', about: 'Show and change the settings', load: () => import('./config.js') },
    {
      name: 'doctor',
      about: 'Check config, address, models, a request, key, disk and journal',
      load: () => import('./doctor.js'),
    },
    {
      name: 'completion',
      about: 'Print the completion script for bash, zsh or fish',
      load: () => import('./completion.js'),
    },
    { name: 'mcp', about: 'Run an MCP server for agents', load: () => import('./mcp.js') },
    { name: 'serve', about: 'Run the local service', load: () => import('./serve.js') },
    {
      name: 'admin',
      about: 'Manage accounts, keys and balances of a local service',
      load: () => import('./admin.js'),
    },
  ]),
]
