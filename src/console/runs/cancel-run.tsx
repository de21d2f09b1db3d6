/** Button that cancels an unfinished run, after a confirmation. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'

export function CancelRun({ run, onDone }: { readonly run: RunDetails; readonly onDone: () => void }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="danger" onClick={() => setOpen(true)}>
        Cancel run
      </Button>
      {isOpen && (
        <ConfirmDialog
          title="Cancel this run?"
          action="Cancel run"
          cancel="Keep it"
          kind="danger"
          name={`cancel ${run.id}`}
          onClose={() => setOpen(false)}
          onConfirm={async () => {
            await request<RunDetails>('POST', CONSOLE_PATHS.cancel, { params: { id: run.id } })
            onDone()
          }}
        >
          <p>
            {run.status === 'queued'
              ? 'It has not started, so its price is refunded.'
              : 'It has started. Its price is refunded only if its model certainly cost nothing.'}
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}
