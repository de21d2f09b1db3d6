import type { ComponentChildren, Ref } from 'preact'
import { Icon, type IconName } from './icon.js'

export interface ButtonLook {
  /** Use at most one `primary` button per view. `ghost` has no border. */
  readonly kind?: 'primary' | 'secondary' | 'danger' | 'ghost'
  readonly size?: 'small' | 'normal'
  readonly icon?: IconName
}

export interface ButtonProps extends ButtonLook {
  readonly children?: ComponentChildren
  /** Accessible name. Required if the button shows only an icon. */
  readonly label?: string
  /** Shows a spinner and ignores clicks. */
  readonly isBusy?: boolean
  readonly disabled?: boolean
  readonly type?: 'button' | 'submit'
  readonly class?: string
  readonly onClick?: (event: MouseEvent) => void
  readonly ref?: Ref<HTMLButtonElement>
  readonly isPressed?: boolean
}

const classOf = (
  { kind = 'secondary', size = 'normal' }: ButtonLook,
  more: string | undefined,
  hasText: boolean,
) =>
  ['button', `button-${kind}`, size === 'small' && 'button-small', !hasText && 'button-icon', more]
    .filter(Boolean)
    .join(' ')

export function Button(props: ButtonProps) {
  const { children, label, isBusy = false, disabled = false, type = 'button', onClick, ref } = props
  return (
    <button
      ref={ref ?? null}
      type={type}
      class={classOf(props, props.class, children !== undefined)}
      aria-label={label}
      title={label}
      aria-busy={isBusy || undefined}
      aria-pressed={props.isPressed}
      disabled={disabled}
      onClick={(event) => {
        // A disabled button would lose the focus, and with it the user's position in the page.
        if (isBusy) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {isBusy ? <span class="spinner" /> : props.icon && <Icon name={props.icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  )
}

export interface LinkButtonProps extends ButtonLook {
  readonly href: string
  readonly children?: ComponentChildren
  readonly label?: string
  readonly class?: string
  /** File name. If set, the browser saves the target instead of opening it. */
  readonly download?: string
  readonly newTab?: boolean
}

/** Link that looks like a button. */
export function LinkButton(props: LinkButtonProps) {
  const { href, children, label, download, newTab = false } = props
  return (
    <a
      href={href}
      class={classOf(props, props.class, children !== undefined)}
      aria-label={label}
      title={label}
      download={download}
      {...(newTab && { target: '_blank', rel: 'noreferrer' })}
    >
      {props.icon && <Icon name={props.icon} />}
      {children !== undefined && <span>{children}</span>}
    </a>
  )
}
