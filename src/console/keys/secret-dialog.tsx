import type { NewKeyAnswer } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { Button } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { Dialog, DialogActions } from '../components/dialog.js'
import { Notice } from '../components/notice.js'
import { useSession } from '../session.js'
import { exportLines } from './key-state.js'

export interface SecretDialogProps {
  readonly answer: NewKeyAnswer
  readonly isRotated: boolean
  readonly onClose: () => void
}

/** The only place where a secret is shown, once. */
export function SecretDialog({ answer, isRotated, onClose }: SecretDialogProps) {
  const { base_url: baseUrl, models } = useSession()
  const lines = exportLines({
    RUSHES_BASE_URL: baseUrl,
    RUSHES_API_KEY: answer.api_key,
    RUSHES_IMAGE_MODEL: models.image,
    RUSHES_VIDEO_MODEL: models.video,
  })
  return (
    <Dialog
      title={
        isRotated
          ? `"${printable(answer.key.name)}" has a new secret`
          : `"${printable(answer.key.name)}" is created`
      }
      size="wide"
      isSticky
      onClose={onClose}
    >
      <Notice tone="warn" title="Copy the key now.">
        It is shown only once: the service keeps its hash, not the key.
      </Notice>
      <div class="stack">
        <h3>API key</h3>
        <CodeBlock code={answer.api_key} label="API key" />
      </div>
      <div class="stack">
        <h3>To use it in a terminal</h3>
        <CodeBlock code={lines} label="export lines" />
      </div>
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </DialogActions>
    </Dialog>
  )
}
