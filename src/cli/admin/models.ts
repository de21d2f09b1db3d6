/** `rushes admin models`: the models of a service, with their workers and unfinished runs. */
import { printable } from '../../protocol/text.js'
import type { ModelUse } from '../../service/administration.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand } from './admin-command.js'

export const modelsCommands: readonly AdminCommand[] = [
  {
    usage: 'list',
    about: 'List models with their workers and unfinished runs',
    async work({ ctx: { out }, admin }) {
      const models = await admin.models()
      printList(out, models, { header: MODEL_HEADER, cells: modelCells, json: modelJson })
      const waiting = models.filter(({ workers, queued }) => workers === 0 && queued > 0)
      for (const { name, queued } of waiting)
        out.note(
          `${printable(name)}: no worker renders it; ${queued} queued. ` +
            'Start `rushes serve` with the document of the model.',
        )
    },
  },
]

const MODEL_HEADER = ['MODEL', 'KIND', 'WORKERS', 'QUEUED', 'PROCESSING']

const modelCells = ({ name, kind, workers, queued, processing }: ModelUse): readonly string[] => [
  printable(name),
  kind,
  ...[workers, queued, processing].map(String),
]

const modelJson = ({ name, kind, workers, queued, processing }: ModelUse) => ({
  model: name,
  kind,
  workers,
  queued,
  processing,
})
