"""Why a setting is not tried: rules over the configuration, and rules over what earlier trials showed."""
