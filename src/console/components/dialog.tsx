import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useAction } from '../resource.js'
import { Button } from './button.js'
import { ErrorNotice } from './notice.js'
import { canAutofocus } from './page.js'

export interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Called on Escape, on the close button, and on a click outside the dialog. */
  readonly onClose: () => void
  readonly size?: 'normal' | 'wide'
  /** Ignores Escape and clicks outside. For content that is shown only once and must not be closed by accident. */
  readonly isSticky?: boolean
}

/** Element that gets the focus first: a field or a button that changes nothing. Browsers would use the close button. */
const FIRST_FOCUS =
  'form input, form textarea, form select, .dialog-actions .button-secondary, .code-block .button'

/** Modal dialog, open as long as it is drawn. Keeps the focus inside, and returns it to the opener when it closes. */
export function Dialog({ title, children, onClose, size = 'normal', isSticky = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const leave = useRef(() => {})
  leave.current = () => {
    if (!isSticky) onClose()
  }
  useEffect(() => {
    const dialog = ref.current
    const opener = document.activeElement
    dialog?.showModal()
    const first = dialog?.querySelector<HTMLElement>(FIRST_FOCUS)
    if (first instanceof HTMLButtonElement || canAutofocus()) first?.focus()
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return
      if (dialog !== Array.from(document.querySelectorAll('dialog:modal')).pop()) return
      // Without this, browsers close the dialog themselves on the second Escape, and report it later.
      event.preventDefault()
      leave.current()
    }
    document.addEventListener('keydown', onKeyDown)
    return () => {
      document.removeEventListener('keydown', onKeyDown)
      dialog?.close()
      // Return the focus here: the browser cannot, since the dialog is removed from the document first.
      // The action may have removed the opener, for example an archived key.
      const next = opener?.isConnected ? opener : document.querySelector('main h1')
      if (next instanceof HTMLElement) next.focus({ preventScroll: true })
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same
    <dialog
      ref={ref}
      class={`dialog dialog-${size}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        leave.current()
      }}
      onClose={({ currentTarget: dialog }) => {
        // A gesture of the system, such as "back", closes the dialog the second time, despite `preventDefault`.
        if (!dialog.isConnected) return
        if (isSticky) dialog.showModal()
        else onClose()
      }}
      onClick={(event) => {
        if (event.target === ref.current) leave.current()
      }}
    >
      <div class="dialog-body">
        <header class="dialog-header">
          <h2 id={titleId}>{title}</h2>
          <Button kind="ghost" size="small" icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** Row of buttons at the bottom of a dialog. */
export function DialogActions({ children }: { readonly children: ComponentChildren }) {
  return <footer class="dialog-actions">{children}</footer>
}

export interface ConfirmDialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Label of the button, such as "Archive key". */
  readonly action: string
  /** Label of the button that changes nothing. Default: "Cancel". */
  readonly cancel?: string
  readonly kind?: 'primary' | 'danger'
  /** Action name. Prevents that the same action runs twice at the same time. */
  readonly name?: string
  /** Runs the action. The dialog closes if it succeeds and shows the error if it fails. */
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

export function ConfirmDialog({
  title,
  children,
  action,
  cancel = 'Cancel',
  kind = 'primary',
  name,
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  const confirm = useAction(onConfirm, { ...(name !== undefined && { name }), onDone: onClose })
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void confirm.run()
        }}
      >
        <div class="stack">{children}</div>
        <ErrorNotice error={confirm.error} />
        <DialogActions>
          <Button onClick={onClose}>{cancel}</Button>
          <Button type="submit" kind={kind} isBusy={confirm.isBusy}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
